"""The frames of a TFRecord file: length, checksum of the length, data, checksum of the data.

The file is read in windows, never whole. Records are framed by a Python loop where they come in no order
and in blocks where they repeat (_tfperiod.py); both check the length's checksum. Where it is wrong, the
next place with a right one is searched for, so damage costs the records it touched and no more.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from wheeltapper.reading._crc32c import crc32c, length_crcs, masked
from wheeltapper.reading._tfcolumns import CHECKED, FOOTER, HEADER, Bytes, Columns
from wheeltapper.reading._tfperiod import Row, mark_of, period_of, row_of
from wheeltapper.reading.record import Ints

WINDOW = 4 << 20
MAX_DAMAGE = 10_000  # places; a file with more is not worth the time
_AFTER_DAMAGE = 1 << 16  # bytes
_LENGTH = struct.Struct("<Q")
_LEARN = 2048  # records looked at when searching for a period
_FIRST_BURST = 64
_LAST_BURST = 1 << 16
_COST = 200  # framing this many records in Python takes as long as one comparison with a row
_PATIENCE = -3000  # records' worth of time that rows may waste before another pattern is tried
_NO_RECORD = 1 << 62


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no record: where, how many, and the number of the record that follows or would."""

    offset: int
    size: int
    record: int
    tail: bool  # True: nothing readable follows


class _Sizes(dict[bytes, int]):
    """Whole size of a record by its 12 header bytes; a wrong checksum gives a size past every end."""

    def __missing__(self, head: bytes) -> int:
        length = _LENGTH.unpack_from(head)[0]
        if masked(crc32c(head[:8])) != int.from_bytes(head[8:], "little"):
            return _NO_RECORD
        if len(self) > 4096:
            self.clear()
        size: int = length + HEADER + FOOTER
        self[head] = size
        return size


def scan(file: BinaryIO, size: int, scanner: Scanner) -> list[Damage]:
    """Read every record from where `scanner` stopped; what was no record.

    What stands after the last whole record is told and not passed over: it may be half written, and the next scan
    begins there.
    """
    damage, columns = scanner.damage, scanner.columns
    offset, span = scanner.offset, WINDOW
    after: list[Damage] = []
    while offset < size:
        scanner.offset = offset
        buffer = os.pread(file.fileno(), min(span, size - offset), offset)
        if len(buffer) < HEADER or len(damage) >= MAX_DAMAGE:
            after = [Damage(offset, size - offset, scanner.record + 1, tail=True)]
            break
        used, previous = scanner.window(buffer)
        start, left = offset + used, len(buffer) - used
        scanner.offset = start
        if left < HEADER and offset + len(buffer) < size:  # the window ends within a header
            offset = start
            continue
        whole = scanner.sizes[buffer[used : used + HEADER]] if left >= HEADER else _NO_RECORD
        if start + whole <= size:
            if whole > WINDOW:  # a picture, a graph or an embedding, not a number
                scanner.record += 1
                columns.skipped["record over 4 MB"] += 1
                start += whole
            scanner.offset = offset = start
            span = min(max(4 * span, whole), WINDOW)
            continue
        if start == size:
            break
        # No header, or one that promises more than there is. If the sum of the record before is wrong too, bytes
        # may be missing, so the search starts inside that record.
        found = _next_header(file, size, start + 1 if previous is None else offset + previous + HEADER, start)
        if found is None:
            after = [Damage(start, size - start, scanner.record + 1, tail=True)]
            break
        damage.append(Damage(start, max(found - start, 0), scanner.record + 1, tail=False))
        scanner.record += 1
        scanner.offset = offset = found
        span = min(_AFTER_DAMAGE, WINDOW)  # where there is damage there may be more
    return [*damage, *after]


def _next_header(file: BinaryIO, size: int, start: int, bad: int) -> int | None:
    """The first offset from `start` on, other than `bad`, whose bytes are a record's header."""
    step = 1 << 16
    at = start
    while at + HEADER <= size:
        chunk = os.pread(file.fileno(), step + HEADER, at)
        room = len(chunk) - HEADER + 1
        if room <= 0:
            return None
        high = np.ndarray((room,), "<u4", chunk, offset=4, strides=(1,))
        places = np.flatnonzero(high == 0)  # no record has 4 GiB
        if len(places):
            lengths = _gather(chunk, "<u8", places)
            right = (length_crcs(lengths) == _gather(chunk, "<u4", places + 8)) & (lengths > 0)
            fits = lengths.astype(np.float64) + (at + HEADER + FOOTER) + places <= size
            for place in places[right & fits].tolist():
                if at + place != bad:
                    return int(at + place)
        at += room
    return None


def _gather(buffer: bytes, dtype: str, places: Ints) -> NDArray[np.uint64]:
    item = np.dtype(dtype)
    view = np.ndarray((len(buffer) - item.itemsize + 1,), item, buffer, strides=(1,))
    gathered: NDArray[np.uint64] = view[places]
    return gathered


@dataclass(slots=True)
class Scanner:
    """A file as far as it was read."""

    columns: Columns = field(default_factory=Columns)
    offset: int = 0  # where the next record begins
    record: int = 0  # records so far
    damage: list[Damage] = field(default_factory=list)
    sizes: _Sizes = field(default_factory=_Sizes)
    row: Row | None = None
    score: int = 0
    need: int = 16  # records that must keep to a period before it is believed
    burst: int = _FIRST_BURST
    mean: int = 64  # bytes per record, roughly

    def window(self, buffer: bytes) -> tuple[int, int | None]:
        """Take the records at the start of `buffer`; where they stop, and a last record of doubtful sum."""
        view: Bytes = np.frombuffer(buffer, np.uint8)
        stop = len(buffer) - HEADER
        at = 0
        framed: list[tuple[Ints, int]] = []
        blocks: dict[int, tuple[Row, list[tuple[int, int, int]]]] = {}
        sound = True
        while at <= stop and sound:
            row = self.row
            if row is None:
                starts, at, sound = self._loop(buffer, at, stop)
            else:
                rows, slot = row.run(view, at)
                if rows:
                    blocks.setdefault(id(row), (row, []))[1].append((at, rows, self.record + 1))
                    self.record += rows * row.period
                    at += rows * row.size
                if slot is None:  # the rest of the window is shorter than a row
                    starts, at, sound = self._loop(buffer, at, stop, learn=False)
                else:
                    self._judge(rows * row.period - _COST, slot)
                    starts, at, sound = self._seek(buffer, at, stop)
            if len(starts):
                framed.append((starts, self.record + 1))
                self.record += len(starts)
        for row, found in blocks.values():
            row.decode(self.columns, buffer, found)
        last = self._framed(buffer, framed, at)
        return at, last

    def _framed(self, buffer: bytes, framed: list[tuple[Ints, int]], end: int) -> int | None:
        if not framed:
            return None
        starts = np.concatenate([s for s, _ in framed])
        records = np.concatenate([first + np.arange(len(s), dtype=np.int64) for s, first in framed])
        lengths = _gather(buffer, "<u8", starts).astype(np.int64)
        self.columns.take(buffer, starts, lengths, records)
        self.mean = max(int(lengths.mean()) + HEADER + FOOTER, 32)
        start, length = int(starts[-1]), int(lengths[-1])
        data = buffer[start + HEADER : start + HEADER + length]
        if start + length + HEADER + FOOTER != end or length > CHECKED:
            return None
        stored = int.from_bytes(buffer[end - FOOTER : end], "little")
        return start if masked(crc32c(data)) != stored else None

    def _judge(self, gain: int, slot: int) -> None:
        """Keep a row while it pays; start it where the pattern breaks, which is where it will again."""
        assert self.row is not None
        self.score = min(self.score + gain, 5000)
        if self.score < _PATIENCE:
            self.row, self.score = None, 0
            self.need = min(self.need * 4, _LEARN // 2)
        elif slot:
            self.row = self.row.rotated(slot)

    def _loop(self, buffer: bytes, at: int, stop: int, *, learn: bool = True) -> tuple[Ints, int, bool]:
        """Frame records one by one: their starts, where the next one lies, whether its header is sound."""
        limit = min(stop, at + self.burst * self.mean) if learn else stop
        out: list[int] = []
        append = out.append
        read = _LENGTH.unpack_from
        overhead = HEADER + FOOTER
        while at <= limit:
            append(at)
            at += read(buffer, at)[0] + overhead
        starts = np.array(out, np.int64)
        lengths = _gather(buffer, "<u8", starts)
        wrong = length_crcs(lengths) != _gather(buffer, "<u4", starts + 8)
        if wrong.any():
            first = int(np.argmax(wrong))
            return starts[:first], int(starts[first]), False
        if at > len(buffer):  # the last record is not whole in this window
            return starts[:-1], int(starts[-1]), False
        if learn:
            self._learn(buffer, out, at)
        return starts, at, True

    def _seek(self, buffer: bytes, at: int, stop: int) -> tuple[Ints, int, bool]:
        """Frame records until the row starts again; give the row up if it does not come back."""
        out: list[int] = []
        row, sizes, end = self.row, self.sizes, len(buffer)
        if row is None:
            return np.array(out, np.int64), at, True
        a, b, mark = row.mark
        header = row.header
        for _ in range(max(256, 4 * row.period)):
            if at > stop:
                break
            head = buffer[at : at + HEADER]
            if head == header and out and buffer[at + a : at + b] == mark:
                return np.array(out, np.int64), at, True
            size = sizes[head]
            if at + size > end:
                return np.array(out, np.int64), at, False
            out.append(at)
            at += size
        else:
            self.row = None
            self.burst = _FIRST_BURST
        return np.array(out, np.int64), at, True

    def _learn(self, buffer: bytes, starts: list[int], end: int) -> None:
        """Look for a period in the records just framed; look less often each time there is none."""
        starts = starts[-_LEARN:]
        ends = [*starts[1:], end]
        marks = [mark_of(buffer, s, e - s - HEADER - FOOTER) for s, e in zip(starts, ends, strict=True)]
        # The records may end with something else (a histogram), so earlier stretches are looked at as well.
        for last in range(len(marks), 2 * self.need, -max(len(marks) // 8, 1)):
            period = period_of(marks[:last], self.need)
            if period is not None:
                self.row = row_of(self.columns, buffer, starts[last - period : last], ends[last - period : last])
                break
        if self.row is None:
            self.burst = min(self.burst * 2, _LAST_BURST)
        else:
            self.burst = _FIRST_BURST
            self.score = 0
