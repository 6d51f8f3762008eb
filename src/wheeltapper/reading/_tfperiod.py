"""The pattern in which a run writes its records: the same tags in the same order, step after step.

A `Row` is one round of that pattern as bytes with a mask. Rows ahead are compared with it a block at a
time, which frames and recognises the records in them without a Python step per record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wheeltapper.reading._tfcolumns import FOOTER, HEADER, Bytes, Columns, Layout, layout_mask
from wheeltapper.reading.record import Ints

MAX_PERIOD = 2048  # records in a round
MAX_ROW = 1 << 17  # bytes in a round: a window must hold many
_TILE = 1024  # bytes; short rows are compared several at a time, or numpy's inner loop is too short
_BLOCK = 1 << 18  # bytes compared at once: stays in the cache

Slot = tuple[Layout, int, bytes, bytes, Bytes]  # layout, class, header, record, mask of the record


class Row:
    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)
        self.period = len(self.slots)
        template: list[bytes] = []
        masks: list[Bytes] = []
        offsets = [0]
        for _, _, header, data, mask in self.slots:
            template += [header, data, bytes(FOOTER)]
            masks += [np.full(HEADER, 0xFF, np.uint8), mask, np.zeros(FOOTER, np.uint8)]
            offsets.append(offsets[-1] + HEADER + len(data) + FOOTER)
        self.size = offsets[-1]
        self.offsets: Ints = np.array(offsets[:-1], np.int64)
        repeat = -(-_TILE // self.size)
        self.tile = np.frombuffer(b"".join(template) * repeat, np.uint8)
        self.mask = np.tile(np.concatenate(masks), repeat)
        # What the first record of a row starts with, up to the first byte that may differ, and its tag.
        _, _, self.header, data, mask = self.slots[0]
        fixed = np.flatnonzero(np.diff(np.concatenate([[False], mask == 0xFF, [False]]).astype(np.int8)))
        runs = fixed.reshape(-1, 2)
        a, b = runs[np.argmax(runs[:, 1] - runs[:, 0])].tolist()
        self.mark = (HEADER + a, HEADER + b, data[a:b])

    def rotated(self, slot: int) -> Row:
        """The same pattern, starting with another of its records."""
        return Row(self.slots[slot:] + self.slots[:slot])

    def run(self, view: Bytes, at: int) -> tuple[int, int | None]:
        """How many whole rows follow from `at`, and the slot that broke the pattern (None: ran out)."""
        tile = len(self.tile)
        room = (len(view) - at) // tile
        done, ask = 0, 4
        while done < room:
            count = min(ask, room - done)
            start = at + done * tile
            block = view[start : start + count * tile].reshape(count, tile)
            differs = (block ^ self.tile) & self.mask
            flat = differs.ravel()
            if (flat.view("<u8") if flat.size % 8 == 0 else flat).any():
                first = done * tile + int(np.argmax(flat != 0))
                slot = int(np.searchsorted(self.offsets, first % self.size, side="right")) - 1
                return first // self.size, slot
            done += count
            ask = min(ask * 4, max(_BLOCK // tile, 1))
        return done * (tile // self.size), None

    def decode(self, columns: Columns, buffer: bytes, blocks: list[tuple[int, int, int]]) -> None:
        """Blocks of rows (where, how many, number of the first record) become columns."""
        bases = np.concatenate([at + np.arange(n, dtype=np.int64) * self.size for at, n, _ in blocks])
        firsts = np.concatenate([r + np.arange(n, dtype=np.int64) * self.period for _, n, r in blocks])
        groups: dict[int, list[int]] = {}
        for i, slot in enumerate(self.slots):
            groups.setdefault(id(slot[0]), []).append(i)
        for members in groups.values():
            members.sort(key=lambda i: self.slots[i][1])
            layout = self.slots[members[0]][0]
            chosen = np.array(members)
            starts = (self.offsets[chosen][:, None] + bases).ravel()
            records = (chosen[:, None] + firsts).ravel()
            found = np.repeat(np.array([self.slots[i][1] for i in members], np.int32), len(bases))
            columns.decode(layout, buffer, layout.rows(buffer, starts), found, starts, records)


def period_of(marks: Sequence[Any], need: int) -> int | None:
    """The shortest period that the last `need` items (and at least two rounds) keep to.

    >>> period_of("xabcabcabcabc", 6)
    3
    """
    last = len(marks) - 1
    for period in range(1, min(MAX_PERIOD, len(marks) // 2) + 1):
        if marks[last - period] != marks[last]:
            continue
        length = max(period, need)
        if length + period > len(marks):
            return None
        if marks[last - length + 1 :] == marks[last - length + 1 - period : last + 1 - period]:
            return period
    return None


def mark_of(buffer: bytes, start: int, length: int) -> tuple[int, bytes]:
    """What tells records of different tags apart, without parsing: length and bytes up to the tag's end."""
    at = start + HEADER
    end = at + length
    begin = at
    try:
        if buffer[at] == 0x09:
            at += 9
        if buffer[at] == 0x10:
            at += 1
            while buffer[at] >= 0x80:
                at += 1
            at += 1
        begin = at
        for _ in range(2):  # the keys and lengths of the summary and of its first value
            at += 1
            while buffer[at] >= 0x80:
                at += 1
            at += 1
        tag = at + 2 + buffer[at + 1]
    except IndexError:
        return length, b""
    return length, buffer[begin : min(tag, end, begin + 512)]


def row_of(columns: Columns, buffer: bytes, starts: Sequence[int], ends: Sequence[int]) -> Row | None:
    """A row from one round of records, where all of them can be decoded as columns."""
    if ends[-1] - starts[0] > MAX_ROW:
        return None
    slots: list[Slot] = []
    for start, end in zip(starts, ends, strict=True):
        data = buffer[start + HEADER : end - FOOTER]
        learned = columns.learn(data, buffer[end - FOOTER : end])
        if learned is None:
            return None
        layout, index, event = learned
        slots.append((layout, index, buffer[start : start + HEADER], data, layout_mask(data, event)))
    return Row(slots)
