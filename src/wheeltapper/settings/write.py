"""Edited files to disk: whole or not at all, never over the author's file unless asked, then with a backup.

A reader of the target sees the old text or the new one, whatever moment the process is killed at: the new
text goes to a temporary file in the same folder, is forced to disk, and takes the name in one step.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from wheeltapper.errors import InputError, RefusedEdit
from wheeltapper.settings.edited import Edited
from wheeltapper.settings.parse import decode


def write(edited: Edited, target: Path | str, *, in_place: bool = False) -> Path:
    """Write the new text to `target` (a folder: under the file's own name). Gives the path written.

    With `in_place` the file itself is replaced (`target` is then that file) and the old one kept as `.bak`.
    """
    source = Path(edited.file)
    data = _encoded(edited, source)
    path = Path(target)
    if path.is_dir():
        path = path / source.name
    over_itself = source.exists() and path.exists() and path.samefile(source)
    if over_itself and not in_place:
        raise RefusedEdit("this is the file itself, and it is not written over", where=str(path), do="Use in_place.")
    if in_place and not over_itself:
        raise RefusedEdit(f"in_place means {edited.file}, not this file", where=str(path))
    if over_itself:
        backup(source)
    elif path.exists() and path.read_bytes() != data:
        raise RefusedEdit("a file of this name is there already", where=str(path), do="Choose another folder.")
    replace_bytes(path, data, like=source if source.exists() else None)
    return path


def backup(source: Path) -> Path:
    """A copy beside the file, under the first of .bak, .bak1, .bak2 ... that is free: none is written over."""
    data = source.read_bytes()
    number = 0
    while True:
        name = source.with_name(f"{source.name}.bak{number or ''}")
        if name.exists():
            if name.read_bytes() == data:
                return name
            number += 1
            continue
        held = _temporary(name, data, like=source)
        try:
            os.link(held, name)  # unlike a rename, this fails if the name was taken meanwhile
        except FileExistsError:
            continue
        except OSError:  # a file system without links
            os.replace(held, name)
        finally:
            held.unlink(missing_ok=True)
        _sync_folder(name.parent)
        return name


def replace_bytes(path: Path, data: bytes, *, like: Path | None = None) -> None:
    """Make `path` hold `data` in one step, with the permissions of `like`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    held = _temporary(path, data, like=like)
    try:
        os.replace(held, path)
    except OSError as error:
        held.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {error.strerror}", where=str(path)) from None
    _sync_folder(path.parent)


def _temporary(path: Path, data: bytes, *, like: Path | None) -> Path:
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", where=str(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:  # the disk is full
        os.unlink(name)
        raise InputError(f"cannot be written: {error.strerror}", where=str(path)) from None
    if like is not None:
        shutil.copymode(like, name)
    else:
        os.chmod(name, 0o644)
    return Path(name)


def _sync_folder(folder: Path) -> None:
    """The new name itself must survive a loss of power, where the system can promise that."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def _encoded(edited: Edited, source: Path) -> bytes:
    """The new text in the encoding of the file, which must still hold the text that was planned on."""
    try:
        held = source.read_bytes()
    except OSError:
        return edited.after.encode()
    if decode(held) != edited.before:
        raise RefusedEdit("the file has changed since it was read", where=edited.file, do="Run this again.")
    if held[:2] in (b"\xff\xfe", b"\xfe\xff"):
        kind = "utf-16-le" if held[:1] == b"\xff" else "utf-16-be"
        return held[:2] + edited.after.encode(kind)
    for encoding in ("utf-8", "cp1252"):
        try:
            if edited.before.encode(encoding) == held:
                return edited.after.encode(encoding)
        except UnicodeEncodeError:
            continue
    raise RefusedEdit("the encoding of this file is not known", where=edited.file, do="Save it as UTF-8.")
