"""Files that still grow, read by polling: each look takes what was appended and nothing that was read before.

Polling works where the file lies on a network file system, and needs no event of the kernel. A file is known by its
inode, size and time of change, which are only ever compared for equality, so the clocks of two machines need not agree.
Before reading on, a few bytes at the start and at the last position are compared with what stood there: a file that was
cut, replaced or written anew is read from its start.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

from wheeltapper.reading import (
    HEAD_BYTES,
    Head,
    has_curve,
    nameless,
    passes_over,
    ranked,
    read_with,
    readings_of,
    suits,
    tells,
)
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import Note, Reading

SEAM = 256  # bytes compared at the start and before the last position: another text agrees in so many by no accident
GROWTH = 2.0  # a file that no reader understands, or that must be read whole, is tried again when it has so grown
SMALL = 1 << 20  # below this a file is simply read again
WAIT_LOOKS = 3  # looks without a change before an unfinished last line counts as all there will be


@dataclass(frozen=True, slots=True)
class Signature:
    """What a file looks like from outside. Equal signatures: nothing was written."""

    device: int
    inode: int
    size: int
    changed: int  # nanoseconds, on the clock of the machine that holds the file


@dataclass(slots=True)
class _File:
    signature: Signature
    readings: list[Reading]
    head: bytes = b""
    reader: ModuleType | None = None  # None: read whole each time
    tail: Tail | None = None
    seam: bytes = b""  # the bytes before the position up to which it was looked at
    seen: int = 0  # that position
    tried: int = 0  # size when it was last read whole
    quiet: int = 0  # looks without a change
    grows: bool = False  # it has changed since the first look
    notes: list[Note] = field(default_factory=list)


class Follower:
    """Reads files again and again. `readings(path)` gives what `readings_of(path)` gives, at the cost of what is new."""

    def __init__(self) -> None:
        self._files: dict[Path, _File] = {}
        self.version = 0  # counts changes in what was read

    def look(self, paths: Iterable[Path]) -> bool:
        """Look at all files; has one of them something new to tell, or is one gone?"""
        before, wanted = self.version, set(paths)
        for path in wanted:
            self.readings(path)
        for path in self._files.keys() - wanted:
            del self._files[path]
            self.version += 1
        return self.version != before

    def kept(self, path: Path) -> list[Reading]:
        """What the file told at the last look, without looking again."""
        known = self._files.get(path)
        return self.readings(path) if known is None else [*known.readings, *_said(path, known)]

    def readings(self, path: Path) -> list[Reading]:
        """Look at one file: everything it has told so far. Never raises: a Note says what could not be read."""
        known = self._files.get(path)
        try:
            now = signature_of(path, fresh=known is None or known.grows)
            if known is None:
                known = self._files[path] = self._first(path, now)
                self.version += 1
            elif known.signature == now:
                self._settle(path, known)
            else:
                known = self._files[path] = self._again(path, known, now)
                known.grows = True
                self.version += 1
        except OSError as error:  # it went away between two calls, or the network did
            note = Note(f"cannot be read: {error.strerror}", str(path), level="lost")
            return known.readings if known else [Reading(str(path), "unreadable", notes=(note,))]
        return [*known.readings, *_said(path, known)]

    def last_change(self, paths: Iterable[Path]) -> float:
        """When the newest of these files was changed, by the clock of the machine that holds it; 0 if none is known."""
        known = [self._files[path].signature.changed for path in paths if path in self._files]
        return max(known, default=0) / 1e9

    def _first(self, path: Path, now: Signature) -> _File:
        with path.open("rb", buffering=0) as file:
            head = file.read(HEAD_BYTES)
        known = _File(now, [], head, tried=now.size)
        if resumable(head):
            loose = False  # a reader of free text found words, and no curve
            named = False  # a table whose columns have names was found
            for _, reader in ranked(Head(path, now.size, head)):
                if not takes_tail(reader):
                    glance = getattr(reader, "glance", None)
                    found = glance(path) if glance else read_with(reader, path)
                    if tells(found) and (glance or suits(reader, found, after_loose=loose)) and not (named and nameless(found)):
                        known.readings = found
                        return known
                    loose, named = loose or tells(found), named or has_curve(found)
                    continue
                tail = Tail()
                found = read_with(reader, path, tail)
                if suits(reader, found, after_loose=loose):
                    if passes_over(Head(path, now.size, head), reader):
                        break  # two readers together: read over at every look
                    known.readings, known.reader, known.tail = found, reader, tail
                    self._mark(path, known, now)
                    return known
                loose, named = loose or tells(found), named or has_curve(found)
        known.readings = readings_of(path)
        return known

    def _again(self, path: Path, known: _File, now: Signature) -> _File:
        """The file is not as it was."""
        known.quiet = 0
        if known.tail is None:
            if now.size > SMALL and known.tried <= now.size < GROWTH * known.tried and not tells(known.readings):
                known.signature = now
                return known
            return self._first(path, now)
        if now.size < known.seen or not _same(path, known):
            what = "shorter than before" if now.size < known.seen else "another one than before"
            fresh = self._first(path, now)
            fresh.notes = [Note(f"the file is {what}: read again from its start", str(path))]
            return fresh
        if known.tail.ended or self._another_reader(path, known, now):
            return self._first(path, now)
        assert known.reader is not None
        known.readings = read_with(known.reader, path, known.tail)
        self._mark(path, known, now)
        return known

    def _another_reader(self, path: Path, known: _File, now: Signature) -> bool:
        """While the head is still being written, it may come to look like another format."""
        if len(known.head) >= HEAD_BYTES:
            return False
        with path.open("rb", buffering=0) as file:
            file.seek(len(known.head))
            known.head += file.read(HEAD_BYTES - len(known.head))
        head = Head(path, now.size, known.head)
        first = next(ranked(head), None)
        return first is None or first[1] is not known.reader or passes_over(head, first[1])

    def _mark(self, path: Path, known: _File, now: Signature) -> None:
        known.signature, known.seen = now, now.size
        with path.open("rb", buffering=0) as file:
            file.seek(max(0, now.size - SEAM))
            known.seam = file.read(min(SEAM, now.size))

    def _settle(self, path: Path, known: _File) -> None:
        """A last line without its end, in a file that does not grow any more, is a whole line."""
        known.quiet += 1
        if known.quiet != WAIT_LOOKS or known.tail is None or known.seam.endswith((b"\n", b"\r")):
            return
        assert known.reader is not None
        known.tail.ended = True  # if it grows after all, it is read from its start
        known.readings = read_with(known.reader, path, known.tail)
        self.version += 1


def _said(path: Path, known: _File) -> list[Reading]:
    """What happened to the file itself, as a reading of its own."""
    return [Reading(str(path), known.readings[0].format, notes=tuple(known.notes))] if known.notes else []


def signature_of(path: Path, *, fresh: bool = True) -> Signature:
    """`fresh`: opened rather than only looked up, for a network file system then asks its server how long the file is."""
    if fresh:
        with path.open("rb", buffering=0) as file:
            info = os.fstat(file.fileno())
    else:
        info = path.stat()
    return Signature(info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)


def _same(path: Path, known: _File) -> bool:
    """Does the file begin, and go on to where it was looked at, as it did?"""
    with path.open("rb", buffering=0) as file:
        start = file.read(min(SEAM, len(known.head)))
        file.seek(max(0, known.seen - SEAM))
        return start == known.head[:SEAM] and file.read(len(known.seam)) == known.seam


def resumable(head: bytes) -> bool:
    """Is there enough of the file to tell what it is: a whole line, or a record of a binary format?"""
    return b"\n" in head or b"\r" in head[:-1] or len(head) >= 4096 or b"\x00" in head


@cache
def takes_tail(reader: ModuleType) -> bool:
    return "tail" in inspect.signature(reader.read).parameters
