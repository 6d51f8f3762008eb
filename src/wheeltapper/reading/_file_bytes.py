"""The bytes of a file, read where they are asked for and never mapped.

A training may write its checkpoint anew while it is read. A page of a mapped file that is gone kills the process
(SIGBUS); a read of it only comes back short, and `FileChangedError` says so.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import overload

_PAGE = 1 << 16  # bytes read at once for single bytes and short pieces
_SEARCH = 1 << 20


class FileChangedError(OSError):
    """The file became shorter, or was written, while it was read."""


class FileBytes:
    """What `bytes` of the whole file would answer, for the few questions that the readers of checkpoints ask."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._before = os.fstat(self._file)
        self._size = self._before.st_size
        self._page, self._start = b"", 0

    def __enter__(self) -> FileBytes:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._file)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> bytes: ...
    def __getitem__(self, at: int | slice) -> int | bytes:
        if isinstance(at, slice):
            start, stop, _ = at.indices(self._size)
            return self._piece(start, stop)
        inside = at - self._start
        if 0 <= inside < len(self._page):
            return self._page[inside]
        return self._piece(at, at + 1)[0]

    def _piece(self, start: int, stop: int) -> bytes:
        if stop <= start:
            return b""
        if stop - start >= _PAGE:
            return self._read(start, stop)
        if start < self._start or stop > self._start + len(self._page):
            self._page, self._start = self._read(start, min(self._size, start + _PAGE)), start
        return self._page[start - self._start : stop - self._start]

    def _read(self, start: int, stop: int) -> bytes:
        parts, at = [], start
        while at < stop:
            part = os.pread(self._file, stop - at, at)
            if not part:
                raise FileChangedError("it became shorter while it was read")
            parts.append(part)
            at += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def find(self, what: bytes, start: int, stop: int) -> int:
        for at in range(start, max(start, stop), _SEARCH):
            piece = self[at : min(stop, at + _SEARCH + len(what) - 1)]
            if (inside := piece.find(what)) >= 0:
                return at + inside
        return -1

    def rfind(self, what: bytes, start: int) -> int:
        inside = self[start:].rfind(what)
        return start + inside if inside >= 0 else -1

    def check_unchanged(self) -> None:
        """Raises FileChangedError if the file was written since it was opened: the pieces may not belong together."""
        now = os.fstat(self._file)
        if (now.st_size, now.st_mtime_ns) != (self._before.st_size, self._before.st_mtime_ns):
            raise FileChangedError("it was written while it was read")


Data = bytes | FileBytes
