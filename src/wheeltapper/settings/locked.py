"""Two processes that write the same thing take turns; two folders change places in one step."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Iterator
from pathlib import Path

from wheeltapper.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

WAIT = 30.0  # seconds for another process to finish; a write takes a hundredth of one
_NAP = 0.01
_AT_FDCWD, _EXCHANGE = -100, 2  # of renameat2 (Linux)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Alone with what lies in `folder`, among processes of ours. No file is made for it: the folder itself is locked,
    and the lock goes with the process. Where the system has no such lock, there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = None if fcntl is None else _lock(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(folder: Path) -> int | None:
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        try:
            handle = os.open(folder, os.O_RDONLY)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(folder)):
                return handle  # else another folder took its place while we waited
        except BlockingIOError:
            pass
        except OSError:  # a network file system without locks
            return handle
        os.close(handle)
        time.sleep(_NAP)
    raise InputError("another wheeltapper has been writing here for long.", where=str(folder))


def exchange(a: Path, b: Path) -> bool:
    """Let two folders change places in one step. False where the system cannot: nothing was done then."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    done: int = call(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _EXCHANGE)
    return done == 0
