"""Row files (CSV, JSON lines) in blocks of whole lines, as bytes, with the number of their first line.

Everything a reader of rows must survive before it looks at a row is here: byte order marks, UTF-16, lone
carriage returns as line ends, a line of many megabytes, an unreadable file, a Git LFS pointer.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._english import english, has_foreign
from wheeltapper.reading.record import Note

BLOCK_BYTES = 1 << 22  # per-block costs vanish at 4 MiB, and decoded rows of one block stay small
LINE_LIMIT = 1 << 24  # issue 2: a longer line is no row of numbers; it is noted and skipped
DOCUMENT_LIMIT = 128 << 20  # a JSON document has to be held whole and takes up to 24 times as much: 3 GB; a longer one is refused

NAMED_BY = 3  # lines by which the columns of a table have their names
NAMED_IN = 4096  # bytes of them

LFS_MARK = b"version https://git-lfs.github.com/spec/"
CONFLICT = re.compile(rb"^(?:<{7} |={7}\r?$|>{7} |\|{7} )")
CONFLICT_NOTE = "{n} merge-conflict marks left out; both sides are kept"
_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def is_lfs_pointer(data: bytes) -> bool:
    return data.startswith(LFS_MARK)


def lfs_note(file: str, data: bytes) -> Note:
    size = re.search(rb"^size (\d+)", data, re.MULTILINE)
    of = f" of {int(size[1]):,} bytes" if size else ""
    return Note(f"this is a Git LFS pointer, not the data{of}; fetch it with `git lfs pull`", file, 1, "lost")


def blocks(path: Path, notes: list[Note], *, block: int = BLOCK_BYTES) -> Iterator[tuple[int, bytes]]:
    """(number of the first line, whole lines) through the file; only the last may lack its line end."""
    feed = BlockFeed(path, notes, block=block)
    yield from feed.more()
    yield from feed.last()


class BlockFeed:
    """Reads a file in looks: `more` gives the whole lines written since the last one."""

    def __init__(self, path: Path, notes: list[Note], *, block: int = BLOCK_BYTES) -> None:
        self.path = path
        self.notes = notes
        self.position = 0  # bytes read so far
        self._block = block
        self._name = str(path)
        self._line = 1
        self._rest = b""  # a line that is not whole yet
        self._skipped = 0
        self._begun = self._refused = False
        self._mac: bool | None = None  # lone carriage returns end lines; None: no line has ended yet
        self._decoder: codecs.IncrementalDecoder | None = None

    def more(self) -> Iterator[tuple[int, bytes]]:
        """Blocks up to the last line end in the file."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.position)
                while not self._refused and (data := file.read(self._block)):
                    self.position += len(data)
                    if not self._begun:
                        data = self._begin(data)
                    if self._decoder is not None:
                        data = self._decoder.decode(data).encode("utf-8", "replace")
                    whole = self._whole(data)
                    if whole:
                        yield self._line, whole
                        self._line += whole.count(b"\n")
        except OSError as error:
            self.notes.append(Note(f"reading stopped: {error.strerror}", self._name, self._line, level="lost"))

    def last(self) -> Iterator[tuple[int, bytes]]:
        """What stands after the last line end, once the file will not grow any more."""
        if not self._begun:
            self.notes.append(Note("the file is empty", self._name, level="info"))
        elif self._skipped:
            self.notes.append(self._too_long(self._skipped))
        elif self._rest:
            yield self._line, self._rest.replace(b"\r", b"\n") if self._mac is None else self._rest
        self._rest, self._skipped = b"", 0

    def _begin(self, data: bytes) -> bytes:
        self._begun = True
        wide = _WIDE.get(data[:2])
        if is_lfs_pointer(data):
            self.notes.append(lfs_note(self._name, data))
            self._refused = True
        elif b"\x00" in data[:4096] and wide is None:
            self.notes.append(Note("binary data, not a table of text", self._name, level="lost"))
            self._refused = True
        if self._refused:
            return b""
        if wide:
            self._decoder = codecs.getincrementaldecoder(wide)(errors="replace")
            self.notes.append(Note("the file is UTF-16", self._name, level="repaired"))
            return data[2:]  # its names are as they are
        return _in_english(data.removeprefix(codecs.BOM_UTF8))

    def _whole(self, data: bytes) -> bytes:
        """The whole lines that `data` completes; keeps the start of the next."""
        if self._mac is None and (b"\n" in data or len(self._rest) + len(data) >= self._block):
            self._mac = b"\n" not in data and b"\r" in self._rest + data
            self._rest, data = (b"", self._rest + data) if self._mac else (self._rest, data)
        if self._mac:
            data = data.replace(b"\r", b"\n")
        if self._skipped:
            end = data.find(b"\n")
            self._skipped += len(data) if end < 0 else end
            if end >= 0:
                self.notes.append(self._too_long(self._skipped))
                self._skipped = 0
            data = b"" if end < 0 else data[end:]  # keeps the line end, so that numbers stay right
        if len(self._rest) + data.find(b"\n") > LINE_LIMIT:
            self.notes.append(self._too_long(len(self._rest) + data.find(b"\n")))
            data, self._rest = data[data.find(b"\n") :], b""
        cut = data.rfind(b"\n") + 1
        whole = self._rest + data[:cut] if cut else b""
        self._rest = data[cut:] if cut else self._rest + data
        if len(self._rest) > LINE_LIMIT:
            self._skipped, self._rest = len(self._rest), b""
        return whole

    def _too_long(self, size: int) -> Note:
        text = f"a line of {size / 1e6:.0f} MB was skipped: no row of numbers is that long"
        return Note(text, self._name, self._line, "lost")


def _in_english(data: bytes) -> bytes:
    start = data[:NAMED_IN]
    if not has_foreign(start.decode("utf-8", "replace")):
        return data
    cut = start.rfind(b"\n") + 1 if len(data) > NAMED_IN else len(start)
    return _named_in_english(data[:cut].decode("utf-8", "replace")).encode() + data[cut:]


def whole(path: Path, notes: list[Note]) -> bytes:
    """A document that can only be read whole (JSON, YAML); empty, with a Note, if it cannot be."""
    name = str(path)
    try:
        if path.stat().st_size > DOCUMENT_LIMIT:
            notes.append(Note(f"over {DOCUMENT_LIMIT >> 20} MiB in one JSON document: not read", name, level="lost"))
            return b""
        data = path.read_bytes()
    except OSError as error:
        notes.append(Note(f"cannot be read: {error.strerror}", name, level="lost"))
        return b""
    if is_lfs_pointer(data):
        notes.append(lfs_note(name, data))
        return b""
    if not data.strip():
        notes.append(Note("the file is empty", name, level="info"))
        return b""
    return data


def first_rows(head: Head, limit: int = 40) -> list[str]:
    """The first lines of a text file for sniffing: stripped, not blank, without conflict marks."""
    if head.looks_binary and head.data[:2] not in _WIDE:
        return []
    if head.data[:2] in _WIDE:
        text = head.data.decode(_WIDE[head.data[:2]], errors="replace")
    else:
        text = head.text
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = _named_in_english(text)
    pieces = text.split("\n", limit + 1)[: limit + 1]
    if len(pieces) > 1 and (head.size > len(head.data) or len(pieces) > limit):
        pieces.pop()  # cut by the head, or the remainder of the split
    rows = (piece.strip() for piece in pieces)
    return [row for row in rows if row and not CONFLICT.match(row.encode("utf-8", "replace"))]


def _named_in_english(text: str) -> str:
    """The text with the names of its columns, on the first lines, in English."""
    cut = 0
    for _ in range(NAMED_BY):
        cut = text.find("\n", cut) + 1 or len(text)
    start = text[: min(cut, NAMED_IN)]
    return english(start) + text[len(start) :] if has_foreign(start) else text


def first_objects(head: Head, limit: int = 12) -> list[dict[str, object]]:
    """The first JSON objects of a JSON-lines file for sniffing; empty if most lines are something else."""
    rows = first_rows(head, limit)
    found: list[dict[str, object]] = []
    for row in rows:
        if not row.startswith("{"):
            continue
        try:
            value = json.loads(row)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found if 2 * len(found) >= len(rows) else []


def header_of(head: Head) -> list[str]:
    """The cells of the first row that is not a comment, for sniffing a CSV."""
    for row in first_rows(head, 8):
        if not row.startswith("#"):
            delimiter = max(",;\t", key=row.count)
            return [cell.strip().strip('"').strip() for cell in row.split(delimiter)]
    return []
