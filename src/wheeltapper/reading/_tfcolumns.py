"""TensorBoard records decoded as columns.

Two records have the same *layout* when their numbers lie at the same places, and are of the same *class*
when, besides, all their other bytes are equal (so the same tags). A record of each class is parsed once
in Python; every other record of the class is recognised by a hash of its constant bytes, checked by its
checksum and decoded with numpy. What no class fits is parsed one by one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wheeltapper.reading._crc32c import Words32, byte_table, crc32c, masked, masked_column
from wheeltapper.reading._proto import MalformedError
from wheeltapper.reading._tfevent import DTYPES, Parsed, from_raw, from_varints, number_at, parse, wall_and_step
from wheeltapper.reading.record import Floats, Ints

Bytes = NDArray[np.uint8]
Piece = tuple[Ints, Floats, Ints, NDArray[Any]]  # record numbers, wall times, steps, values

MAX_TAGS = 50_000  # each series costs about a kilobyte; no known run comes near
MAX_CLASSES = 60_000  # class numbers are sorted as 16-bit integers
FEW = 16  # below this many equal records, numpy's call overhead costs more than parsing them
MAX_LAYOUT = 1 << 16  # bytes; longer records with scalars in them are parsed one by one
CHECKED = 1 << 16  # bytes; a longer record that is parsed in Python holds a picture, not a number
MAX_TEXTS = 64
MAX_TEXT = 1 << 20
HEADER, FOOTER = 12, 4

# Odd constants (splitmix64) for a linear hash of the masked words. A collision costs time only: the
# checksum decides.
_HASH = np.arange(1, MAX_LAYOUT // 8 + 3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
_HASH = (_HASH ^ (_HASH >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
_HASH = (_HASH ^ (_HASH >> np.uint64(27))) | np.uint64(1)


@dataclass(frozen=True, slots=True)
class Class:
    tags: tuple[str, ...]
    skipped: tuple[str, ...]
    constant: int  # checksum of the record with its numbers set to zero


class Layout:
    """Where the numbers of a record lie, and the classes seen with them there."""

    def __init__(self, data: bytes, event: Parsed) -> None:
        self.length = len(data)
        self.wall, self.step = event.wall, event.step
        self.scalars = tuple((s.dtype, s.at, s.size, s.packed) for s in event.scalars)
        mask = layout_mask(data, event)
        if self.scalars:
            reach = self.length + FOOTER
            mask = np.concatenate([mask, np.zeros(FOOTER, np.uint8)])
        else:  # a payload that is skipped is not even touched
            reach = int(np.flatnonzero(mask)[-1]) + 1 if mask.any() else 0
            mask = mask[:reach]
        self.width = -(-max(reach, 8) // 8) * 8
        self.lead = self.width - reach  # rows are cut so that they end with the record
        self.reach = reach
        self.mask = np.concatenate([np.zeros(self.lead, np.uint8), mask]).view("<u8")
        self.varying = [
            place
            for at, size in _varying(event)
            for place in range(at, at + size)
        ]  # fmt: skip
        self.tables = [byte_table(self.length - 1 - place) for place in self.varying] if self.scalars else []
        self.classes: list[Class] = []
        self.constants: Words32 = np.empty(0, np.uint32)
        self._index: dict[int, int] = {}
        self._hashes: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._slots: NDArray[np.int32] = np.empty(0, np.int32)

    def add(self, data: bytes, event: Parsed) -> int:
        """The class of a record that was parsed; a new one if need be."""
        key = int(self.hashes(self._row(data))[0])
        index = self._index.get(key)
        if index is not None:
            return index
        zeroed = bytearray(data)
        for place in self.varying:
            zeroed[place] = 0
        constant = crc32c(bytes(zeroed)) if self.scalars else 0
        self.classes.append(Class(tuple(s.tag for s in event.scalars), tuple(event.skipped), constant))
        index = self._index[key] = len(self.classes) - 1
        self._slots = np.empty(0, np.int32)
        return index

    def _row(self, data: bytes) -> NDArray[np.uint64]:
        body = bytes(self.lead) + data[: self.reach]
        return np.frombuffer(body.ljust(self.width, b"\x00"), dtype="<u8").reshape(1, -1)

    def rows(self, buffer: bytes, starts: Ints) -> NDArray[np.void]:
        """The records whose headers lie at `starts`, each cut out as one fixed-size item."""
        item = np.dtype((np.void, self.width))
        view = np.ndarray((len(buffer) - self.width + 1,), dtype=item, buffer=buffer, strides=(1,))
        return view[starts + (HEADER - self.lead)]

    def hashes(self, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        hashed: NDArray[np.uint64] = (words & self.mask) @ _HASH[: len(self.mask)]
        return hashed

    def match(self, words: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The class of each row, -1 for none. Look-up by the top 16 bits, then the whole hash."""
        self.refresh()
        hashed = self.hashes(words)
        found = self._slots.take((hashed >> np.uint64(48)).astype(np.intp))
        missed = (found < 0) | (self._hashes.take(found, mode="wrap") != hashed)
        if missed.any():
            again = np.flatnonzero(missed)  # two classes may share their top bits: look those up exactly
            order = np.argsort(self._hashes)
            at = np.minimum(np.searchsorted(self._hashes[order], hashed[again]), len(order) - 1)
            exact = order[at].astype(np.int32)
            found[again] = np.where(self._hashes[exact] == hashed[again], exact, -1)
        return found

    def refresh(self) -> None:
        """Build the look-up arrays again after classes were added."""
        if not len(self._slots):
            self._hashes = np.fromiter(self._index, np.uint64, len(self._index))
            self._slots = np.full(1 << 16, -1, np.int32)
            self._slots[self._hashes >> np.uint64(48)] = np.arange(len(self._hashes), dtype=np.int32)
            self.constants = np.array([c.constant for c in self.classes], np.uint32)


def layout_mask(data: bytes, event: Parsed) -> Bytes:
    """0xFF for bytes that are the same in the whole class, 0x80 where a varint's length must agree."""
    mask = np.full(len(data), 0xFF, np.uint8)
    for start, stop in event.free:
        mask[start:stop] = 0
    if event.wall is not None:
        mask[event.wall : event.wall + 8] = 0
    if event.step is not None:
        mask[event.step[0] : sum(event.step)] = 0x80
    for scalar in event.scalars:
        mask[scalar.at : scalar.at + scalar.size] = 0x80 if scalar.packed else 0
    return mask


def _varying(event: Parsed) -> list[tuple[int, int]]:
    places = [(event.wall, 8)] if event.wall is not None else []
    if event.step is not None:
        places.append(event.step)
    return places + [(s.at, s.size) for s in event.scalars]


def _may_set(text: str) -> bool:
    """Whether a text may hold settings: an object, a table, or several names with values."""
    return len(text) <= MAX_TEXT and (text.lstrip()[:1] in ("{", "|") or text.count("=") > 1 or text.count(": ") > 1)


@dataclass(slots=True)
class Columns:
    """Collects the scalars of one file, by tag."""

    pieces: dict[str, list[Piece]] = field(default_factory=dict)
    singles: dict[str, list[tuple[int, float, int, float]]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    specials: list[tuple[int, float, int, Parsed]] = field(default_factory=list)
    texts: int = 0
    tables: int = 0  # texts that may hold settings
    damaged: list[int] = field(default_factory=list)  # records whose checksum or structure is wrong
    dropped_tags: set[str] = field(default_factory=set)
    plugins: dict[str, str] = field(default_factory=dict)
    layouts: dict[tuple[Any, ...], Layout] = field(default_factory=dict)
    by_length: dict[int, list[Layout]] = field(default_factory=dict)
    classes: int = 0

    def learn(self, data: bytes, footer: bytes) -> tuple[Layout, int, Parsed] | None:
        """The layout and class of a record; None where it must be parsed by itself.

        Only a record with a right checksum may serve as the example of others.
        """
        if len(data) > MAX_LAYOUT or masked(crc32c(data)) != int.from_bytes(footer, "little"):
            return None
        try:
            event = parse(data, self.plugins)
        except MalformedError:
            return None
        places = sorted(_varying(event))
        overlapping = any(a + size > b for (a, size), (b, _) in pairwise(places))
        if not event.plain or overlapping or self.classes >= MAX_CLASSES:
            return None
        mask = layout_mask(data, event)
        scalars = tuple((s.dtype, s.at, s.size, s.packed) for s in event.scalars)
        key = (len(data), mask.tobytes(), scalars, event.wall, event.step)
        layout = self.layouts.get(key)
        if layout is None:
            layout = self.layouts[key] = Layout(data, event)
            self.by_length.setdefault(len(data), []).append(layout)
        before = len(layout.classes)
        index = layout.add(data, event)
        self.classes += len(layout.classes) - before
        return layout, index, event

    def take(self, buffer: bytes, starts: Ints, lengths: Ints, records: Ints) -> None:
        """Decode whole records in any order."""
        order = np.argsort(lengths, kind="stable")
        starts, lengths, records = starts[order], lengths[order], records[order]
        edges = np.flatnonzero(np.diff(lengths)) + 1
        for a, b in zip([0, *edges.tolist()], [*edges.tolist(), len(starts)], strict=True):
            if b - a < FEW:
                self.one_by_one(buffer, starts[a:b], int(lengths[a]), records[a:b])
            elif b > a:
                self._same_length(buffer, starts[a:b], int(lengths[a]), records[a:b])

    def _same_length(self, buffer: bytes, starts: Ints, length: int, records: Ints) -> None:
        """Match against the layouts known; learn from twice as many records each time that is not enough."""
        budget = FEW
        known = 0
        while len(starts) >= FEW:
            layouts = self.by_length.get(length, [])
            for layout in layouts if known != self.classes else ():
                if not len(starts):
                    return
                rows = layout.rows(buffer, starts)
                words = rows.view("<u8").reshape(len(rows), -1)
                found = layout.match(words)
                hit = found >= 0
                if not hit.any():
                    continue
                chosen = np.flatnonzero(hit)
                chosen = chosen[np.argsort(found[chosen].astype(np.uint16), kind="stable")]
                self.decode(layout, buffer, rows[chosen], found[chosen], starts[chosen], records[chosen])
                starts, records = starts[~hit], records[~hit]
            known = self.classes
            sample = min(budget, len(starts))
            keep = np.ones(len(starts), bool)
            seen: set[bytes] = set()
            for i in range(sample):
                at = int(starts[i]) + HEADER
                data = buffer[at : at + length]
                most = data[12:-4]  # in the usual layout the wall time, most of the step and the value lie outside
                if most in seen:
                    continue
                seen.add(most)
                if self.learn(data, buffer[at + length : at + length + FOOTER]) is None:
                    self.one_by_one(buffer, starts[i : i + 1], length, records[i : i + 1])
                    keep[i] = False
            starts, records = starts[keep], records[keep]
            budget *= 2
        self.one_by_one(buffer, starts, length, records)

    def decode(
        self, layout: Layout, buffer: bytes, rows: NDArray[np.void], found: NDArray[Any], starts: Ints, records: Ints
    ) -> None:
        """Rows of one layout, sorted by class, become pieces of series."""
        edges = np.flatnonzero(np.diff(found)) + 1
        groups = list(zip([0, *edges.tolist()], [*edges.tolist(), len(found)], strict=True))
        if not layout.scalars:
            for a, b in groups:
                for kind in layout.classes[int(found[a])].skipped:
                    self.skipped[kind] += b - a
            return
        layout.refresh()
        table = rows.view(np.uint8).reshape(len(rows), -1)
        lead = layout.lead
        crc = layout.constants.take(found)
        for place, entries in zip(layout.varying, layout.tables, strict=True):
            crc ^= entries.take(table[:, lead + place])
        stored = _cut(table, lead + layout.length, "<u4")
        good = masked_column(crc) == stored
        n = len(rows)
        walls = _cut(table, lead + layout.wall, "<f8") if layout.wall is not None else np.zeros(n)
        steps = _varints(table, lead + layout.step[0], layout.step[1]) if layout.step else np.zeros(n, np.int64)
        columns: list[NDArray[Any]] = []
        for dtype, at, size, packed in layout.scalars:
            if size == 0:
                columns.append(np.zeros(n))
            elif packed:
                columns.append(from_varints(_varints(table, lead + at, size), dtype))
            else:
                columns.append(from_raw(_cut(table, lead + at, DTYPES[dtype]), dtype))
        whole = bool(good.all())
        for a, b in groups:
            cls = layout.classes[int(found[a])]
            rows_of: slice | NDArray[np.intp] = slice(a, b) if whole else np.flatnonzero(good[a:b]) + a
            for kind in cls.skipped:
                self.skipped[kind] += b - a
            for tag, column in zip(cls.tags, columns, strict=True):
                self.add(tag, (records[rows_of], walls[rows_of], steps[rows_of], column[rows_of]))
        if not whole:
            bad = ~good
            self.one_by_one(buffer, starts[bad], layout.length, records[bad])

    def add(self, tag: str, piece: Piece) -> None:
        if not len(piece[0]):
            return
        pieces = self.pieces.get(tag)
        if pieces is None:
            if len(self.pieces) + len(self.singles) >= MAX_TAGS:
                self.dropped_tags.add(tag[:80])
                return
            pieces = self.pieces[tag] = []
        pieces.append(piece)

    def one_by_one(self, buffer: bytes, starts: Ints, length: int, records: Ints) -> None:
        for start, record in zip(starts.tolist(), records.tolist(), strict=True):
            at = start + HEADER
            data = buffer[at : at + length]
            self.single(data, record, buffer[at + length : at + length + FOOTER])

    def single(self, data: bytes, record: int, footer: bytes | None) -> None:
        """One record by itself. `footer`: its stored checksum, where it can be checked."""
        kind = skipped_payload(data)
        if kind is not None:
            self.skipped[kind] += 1
            return
        if footer is not None and len(data) <= CHECKED and masked(crc32c(data)) != int.from_bytes(footer, "little"):
            self.damaged.append(record)
            return
        try:
            event = parse(data, self.plugins)
            wall, step = wall_and_step(data, event)
            numbers = [(s.tag, number_at(data, s)) for s in event.scalars]
        except MalformedError:
            self.damaged.append(record)
            return
        self.skipped.update(event.skipped)
        self.texts += len(event.texts)
        event.texts = [item for item in event.texts if _may_set(item[1])]
        if event.texts:
            self.tables += 1
            if self.tables > MAX_TEXTS:
                event.texts = []
        if not event.plain and len(self.specials) < 100 * MAX_TEXTS:
            self.specials.append((record, wall, step, event))
        for tag, value in numbers:
            if tag not in self.singles and len(self.pieces) + len(self.singles) >= MAX_TAGS:
                self.dropped_tags.add(tag[:80])
                continue
            self.singles.setdefault(tag, []).append((record, wall, step, value))


def _cut(table: Bytes, at: int, dtype: str) -> NDArray[Any]:
    """Fixed-size numbers that start at column `at` of each row."""
    size = np.dtype(dtype).itemsize
    return np.ascontiguousarray(table[:, at : at + size]).view(dtype)[:, 0]


def _varints(table: Bytes, at: int, size: int) -> Ints:
    out = (table[:, at] & 0x7F).astype(np.int64)
    for i in range(1, size):
        out |= (table[:, at + i] & 0x7F).astype(np.int64) << (7 * i)
    return out


def skipped_payload(data: bytes) -> str | None:
    """The kind of a record that is one histogram, image or sound as its writers lay it out, else None.

    These are the bulk of many files and each has a length of its own, so this looks at a few bytes only.
    """
    end = len(data)
    if end < 128 or data[0] != 0x09:  # smaller ones are cheap to parse and check
        return None
    try:
        at = 9
        if data[at] == 0x10:
            at += 1
            while data[at] >= 0x80:
                at += 1
            at += 1
        for key in (0x2A, 0x0A):
            if data[at] != key:
                return None
            at += 1
            size = shift = 0
            while True:
                byte = data[at]
                at += 1
                size |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80 or shift > 35:
                    break
            if at + size != end:
                return None
        if data[at] != 0x0A or data[at + 1] >= 0x80:
            return None
        at += 2 + data[at + 1]
        return {0x2A: "histogram", 0x22: "image", 0x32: "audio"}.get(data[at])
    except IndexError:
        return None
