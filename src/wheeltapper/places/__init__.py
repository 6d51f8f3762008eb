"""Where runs live, other than in a folder. `local_path` brings what a run left there into the cache, read-only, and says where
it lies now; a plain path is given back as it is.

    -                        standard input
    s3:// gs:// hf:// ssh:// ...   whatever fsspec opens (with its package for that place)
    mlflow:http://host:5000  a tracking server; mlflow:mlruns, mlflow:mlflow.db a store on disk
    wandb:FOLDER             the offline folders of W&B
    trackio:PROJECT          a project of trackio on this machine
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from wheeltapper.errors import InputError

_URL = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_NAMED = ("mlflow:", "wandb:", "trackio:")


def is_elsewhere(where: str) -> bool:
    """Does this name a place that is no path?

    >>> [is_elsewhere(w) for w in ("-", "s3://bucket/runs", "mlflow:http://x", "runs/exp:1", "C:/runs")]
    [True, True, True, False, False]
    """
    return where == "-" or bool(_URL.match(where)) or (where.startswith(_NAMED) and not os.path.exists(where))


def local_path(where: str | os.PathLike[str]) -> Path:
    """The file or folder on this machine that holds what lies there. Raises InputError, MissingExtra."""
    text = os.fspath(where)
    if not is_elsewhere(text):
        return Path(text)
    if text == "-":
        from wheeltapper.places.stdin import stdin_file

        return stdin_file()
    scheme, _, rest = text.partition(":")
    if scheme == "wandb":
        return _given(rest, "a folder that W&B wrote offline (wandb/ or wandb/offline-run-...)")
    if scheme == "trackio":
        return _trackio(rest)
    if scheme == "mlflow":
        if re.match(r"^https?://", rest):
            from wheeltapper.places.mlflow import brought_runs

            return brought_runs(rest)
        return _given(re.sub(r"^(sqlite|file)://(/(?=/))?", "", rest), "the address of a server, or a store on disk")
    if text.startswith("file://"):
        return Path(text.removeprefix("file://"))
    from wheeltapper.places.remote import brought

    return brought(text)


def _given(path: str, what: str) -> Path:
    if not path or not Path(path).exists():
        raise InputError(f"there is no {path or 'path'} here.", do=f"Name {what}.")
    return Path(path)


def _trackio(project: str) -> Path:
    home = Path(os.environ.get("TRACKIO_DIR") or Path.home() / ".cache" / "huggingface" / "trackio")
    if os.sep in project or project in ("", ".", ".."):
        raise InputError(f"{project!r} is no name of a trackio project.", do="As in trackio:my-project.")
    file = home / f"{project}.db"
    if not file.is_file():
        known = ", ".join(sorted(p.stem for p in home.glob("*.db"))[:10]) if home.is_dir() else ""
        raise InputError(f"trackio has no project {project!r} in {home}.", do=f"It has: {known}." if known else "Set TRACKIO_DIR.")
    return file
