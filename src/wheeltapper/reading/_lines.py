"""The lines of a text file with their numbers, chunk by chunk, so that memory does not grow with the file.

Line numbers are always the file's own: a carriage return overwrites a line, it does not start one, so every state of
a progress bar carries the number of the line it was drawn on. A file that still grows is read on where the last look
stopped.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wheeltapper.reading._english import Manner
from wheeltapper.reading._text import MOJIBAKE, clean, encoding_of, from_utf8
from wheeltapper.reading.record import Note

CHUNK_BYTES = 1 << 20  # large enough that per-chunk costs vanish, small beside any array we keep
EARLY = 300  # lines of a growing file within which it may still show how it writes words and numbers
LINE_BYTES = 1 << 20  # a longer line is an echoed tensor or base64, never a log row: skipped, with a Note


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive lines with their numbers; a line with carriage returns gives one entry per state."""

    numbers: Sequence[int]
    lines: list[str]


def chunks(path: Path, notes: list[Note]) -> Iterator[Chunk]:
    """The lines of a text file. What had to be repaired or skipped is added to `notes`."""
    feed = LineFeed(path)
    yield from feed.more()
    yield from feed.last()
    notes += feed.notes()


class LineFeed:
    """Reads a file in looks: `more` gives the whole lines written since the last one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0  # bytes read so far
        self._name = str(path)
        self._notes: list[Note] = []
        self._line = 1
        self._rest = b""  # a line that is not whole yet
        self._skipping = 0
        self._encoding: str | None = None
        self._wide: codecs.IncrementalDecoder | None = None
        self._bad = self._nul = self._mojibake = 0
        self._manner: Manner | None = None

    def more(self) -> Iterator[Chunk]:
        """Lines up to the last line end or carriage return in the file."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.position)
                while block := file.read(CHUNK_BYTES):
                    self.position += len(block)
                    if self._encoding is None:
                        self._begin(block)
                    if not self._encoding:
                        return
                    whole = self._whole(self._wide.decode(block).encode("utf-8", "replace") if self._wide else block)
                    if whole:
                        yield self._chunk(whole)
        except OSError as error:
            self._notes.append(Note(f"reading stopped: {error.strerror}", self._name, self._line, level="lost"))

    def last(self) -> Iterator[Chunk]:
        """What stands after the last line end, once the file will not grow any more."""
        if self._skipping:
            self._notes.append(self._too_long(self._skipping))
        elif self._rest:
            yield self._chunk(self._rest)
        self._rest, self._skipping = b"", 0

    def notes(self) -> list[Note]:
        """What had to be repaired or skipped so far."""
        out = list(self._notes)
        if self._bad:
            out.append(Note(f"{self._bad} lines are not UTF-8; read as Latin-1", self._name, level="repaired"))
        if self._nul:
            out.append(Note("NUL bytes left out", self._name, level="repaired"))
        if self._mojibake:
            text = "some text is double-encoded (mojibake); numbers are not touched by it"
            out.append(Note(text, self._name, level="info"))
        out += [Note(text, self._name) for text in (self._manner.says() if self._manner else ())]
        return out

    def _begin(self, block: bytes) -> None:
        self._encoding = encoding_of(block)
        if not self._encoding:
            self._notes.append(Note("binary data, not a text log", self._name, level="lost"))
        elif self._encoding != "utf-8":
            self._wide = codecs.getincrementaldecoder(self._encoding)(errors="replace")
            self._notes.append(Note("the file is UTF-16", self._name, level="repaired"))

    def _whole(self, block: bytes) -> bytes:
        """The whole lines that `block` completes. Lines over the limit are left out."""
        data = self._rest + block
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if self._skipping:
            ends = [p for p in (data.find(b"\n"), data.find(b"\r")) if p >= 0]
            start = min(ends, default=len(data))
            self._skipping += start
            if start < len(data):
                self._notes.append(self._too_long(self._skipping))
                self._skipping = 0
            data, cut = data[start:], max(cut - start, 0)
        self._rest = data[cut:]
        if len(self._rest) > LINE_BYTES:
            self._skipping, self._rest = len(self._rest), b""
        return data[:cut]

    def _too_long(self, size: int) -> Note:
        text = f"a line of {size / 1e6:.1f} MB was left out: no log row is that long"
        return Note(text, self._name, self._line, level="lost")

    def _chunk(self, raw: bytes) -> Chunk:
        first = self._line
        text, wrong = from_utf8(raw)
        self._bad += wrong
        if first == 1:
            text = text.removeprefix("\ufeff")
        self._nul += "\x00" in text
        self._mojibake += not text.isascii() and MOJIBAKE.search(text) is not None
        text = clean(text)
        if self._manner is None or (self._manner.plain and first < EARLY):
            self._manner = Manner(text)
        if not self._manner.plain:
            text = self._manner.read(text)
        lines = text.split("\n")
        self._line += len(lines) - 1
        if not lines[-1]:
            lines.pop()
        if "\r" not in text:
            return Chunk(range(first, first + len(lines)), lines)
        numbers: list[int] = []
        states: list[str] = []
        for n, line in enumerate(lines, first):
            for state in line.split("\r"):
                if state and not state.isspace():
                    numbers.append(n)
                    states.append(state)
        return Chunk(numbers, states)
