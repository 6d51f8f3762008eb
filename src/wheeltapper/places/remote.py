"""Files at any place that fsspec opens, brought once: what has the same size and time there is not fetched again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from wheeltapper.errors import InputError, MissingExtra
from wheeltapper.places.cache import folder_for, write_whole
from wheeltapper.run.gather import MOST_FILES, SKIP_FOLDERS, is_worth_opening

LARGEST = 256 << 20  # bytes: larger ones are checkpoints, which tell little for what they cost to fetch
STATE = ".fetched.json"
PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub", "ssh": "paramiko", "sftp": "paramiko", "az": "adlfs"}


def brought(url: str) -> Path:
    """The folder with what lies at a url. Raises InputError where it cannot be reached or holds nothing."""
    files, root, system = _listed(url)
    target = folder_for(url)
    state_file = target.parent / STATE
    known = _known(state_file)
    wanted = {name: info for name, info in files.items() if _wanted(name, info)}
    try:
        for name, info in wanted.items():
            stamp = _stamp(info)
            if known.get(name) != stamp or not (target / name).is_file():
                _fetch(system, str(info["name"]), target / name)
                known[name] = stamp
    except Exception as error:
        raise InputError(f"{url} cannot be read to its end: {_words(error)}", do="Try again: what was fetched is kept.") from None
    finally:
        gone = known.keys() - wanted.keys()
        for name in gone:
            (target / name).unlink(missing_ok=True)
        kept = {name: stamp for name, stamp in known.items() if name not in gone}
        write_whole(state_file, json.dumps(kept).encode())
    if not wanted:
        raise InputError(f"{url} holds no file that could be a log, a config or a checkpoint of a run.", do=f"It was looked for in {root}.")
    return target


def _listed(url: str) -> tuple[dict[str, Any], str, Any]:
    """Every file there, by its path from the url."""
    scheme = url.partition("://")[0].lower()
    try:
        import fsspec
    except ImportError:
        raise MissingExtra("places", "fsspec", f"{scheme}://") from None
    try:
        system, root = fsspec.core.url_to_fs(url)
        system.invalidate_cache()
        info = system.info(root)
        if info["type"] == "file":
            return {PurePosixPath(root).name: info}, root, system
        found = system.find(root, detail=True)
    except ImportError:
        raise MissingExtra("places", PACKAGES.get(scheme, f"the fsspec package for {scheme}"), f"{scheme}://") from None
    except FileNotFoundError:
        raise InputError(f"there is nothing at {url}.", do="Look at its spelling, and whether you may read it.") from None
    except ValueError as error:
        raise InputError(f"{url} names no place that can be read: {_words(error)}", do="As in s3://bucket/runs.") from None
    except Exception as error:  # whatever a client of somebody else raises: no answer, no rights
        raise InputError(f"{url} cannot be reached: {_words(error)}", do="Look at the network and at your credentials.") from None
    base = root.rstrip("/") + "/"
    return {path.removeprefix(base): told for path, told in list(found.items())[:MOST_FILES]}, root, system


def _wanted(name: str, info: Any) -> bool:
    path = PurePosixPath(name)
    safe = not path.is_absolute() and ".." not in path.parts and "\0" not in name and not name.startswith("/")
    near = not any(part in SKIP_FOLDERS for part in path.parts)
    return safe and near and is_worth_opening(path.name) and (info.get("size") or 0) <= LARGEST


def _stamp(info: Any) -> str:
    """What changes when the file does, in the words of its place."""
    keys = ("size", "ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "updated", "modified", "created", "blob_id")
    return " ".join(str(info.get(key, "")) for key in keys)


def _fetch(system: Any, source: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    with system.open(source, "rb") as there, part.open("wb") as here:
        shutil.copyfileobj(there, here, 1 << 20)
    os.replace(part, target)


def _known(file: Path) -> dict[str, str]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"
