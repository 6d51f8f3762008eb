"""Rows of one shape as columns of numbers, and what each column is."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from wheeltapper.reading._text import number, seconds
from wheeltapper.reading.record import Floats, Ints, Window

Role = Literal[
    "value",
    "step",
    "micro_step",
    "epoch",  # as printed, whole or with a fraction
    "inner",  # position inside the epoch, in steps
    "inner_sample",  # position inside the epoch, in samples
    "sample",
    "token",
    "second",
    # Constants of the run, printed on every row: they stay part of the shape.
    "per_epoch",
    "total_steps",
    "total_epochs",
    "bar_total",  # the length of a progress bar that names no epoch: an epoch's or the whole run's
    # The logger's own.
    "time",
    "rank",
]
CONSTANT = {"per_epoch", "total_steps", "total_epochs", "bar_total"}

_FLOATS = msgspec.json.Decoder(list[float])  # twice as fast as float(), and as exact
_PLAIN_STAMP = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?")


@dataclass(frozen=True, slots=True)
class Field:
    """One number on a line: what it is and where it stands."""

    name: str
    start: int
    end: int
    role: Role = "value"
    unit: str | None = None
    split: str | None = None
    about: str | None = None
    window: Window | None = None
    scale: float = 1.0  # kimg -> 1000 samples

    def key(self, text: str) -> tuple[object, ...]:
        constant = text if self.role in CONSTANT else None
        return (self.name, self.role, self.unit, self.split, self.about, self.window, self.scale, constant)


class Table:
    """All rows with the same fields, as columns."""

    def __init__(self, fields: tuple[Field, ...], *, last: bool, anchor: bool) -> None:
        self.fields = fields
        self.last = last
        self.anchor = anchor
        self.constants: dict[str, float] = {}
        self.lines = array("q")
        self.columns = [array("d") for _ in fields]
        self.numbers: list[int] = []  # rows of the current chunk, still text
        self.rows: list[tuple[str, ...]] = []

    def flush(self) -> int:
        """Turn the rows of this chunk from text into numbers; how many could not be."""
        if not self.rows:
            return 0
        bad = self._extend()
        self.numbers.clear()
        self.rows.clear()
        return bad

    def _extend(self) -> int:
        columns: list[list[float]] = []
        bad: set[int] = set()
        for spec, texts in zip(self.fields, zip(*self.rows, strict=True), strict=True):
            if spec.role == "time":
                columns.append(_times(texts))
                continue
            values = _floats(texts)
            if values is None:
                known = [number(text) for text in texts]
                bad.update(i for i, value in enumerate(known) if value is None)
                values = [float("nan") if value is None else value for value in known]
            columns.append(values)
        numbers = self.numbers
        if bad:
            numbers = [n for i, n in enumerate(numbers) if i not in bad]
            columns = [[v for i, v in enumerate(column) if i not in bad] for column in columns]
        self.lines.extend(numbers)
        for store, column in zip(self.columns, columns, strict=True):
            store.extend(array("d", column))
        return len(bad)

    def column(self, role: Role) -> Floats | None:
        for spec, store in zip(self.fields, self.columns, strict=True):
            if spec.role == role:
                return np.frombuffer(store, dtype=np.float64) * spec.scale if len(store) else np.empty(0)
        return None

    def line_numbers(self) -> Ints:
        return np.frombuffer(self.lines, dtype=np.int64).copy() if len(self.lines) else np.empty(0, np.int64)


def _floats(texts: tuple[str, ...]) -> list[float] | None:
    try:
        joined = ";".join(texts).replace(",", "").replace(";", ",")  # without thousands commas
        values = _FLOATS.decode("[" + joined + "]")
        if len(values) == len(texts):
            return values
    except (msgspec.DecodeError, UnicodeError):
        pass  # not JSON: nan, 0180, 1.
    try:
        return list(map(float, texts))
    except ValueError:
        return None


_EPOCH_DAY = 719468  # days from 0000-03-01 to 1970-01-01


def _times(texts: tuple[str, ...]) -> list[float]:
    """Seconds since 1970. Stamps of one width are read as columns of digits, without a call per stamp."""
    width = len(texts[0])
    joined = "".join(texts)
    plain = joined.isascii() and len(joined) == width * len(texts) and _PLAIN_STAMP.fullmatch(texts[0])
    if plain:
        digits = np.frombuffer(joined.encode(), dtype=np.uint8).reshape(len(texts), width).astype(np.int64) - 48
        where = [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, *range(20, width)]
        if ((digits[:, where] >= 0) & (digits[:, where] <= 9)).all():
            two = [digits[:, a] * 10 + digits[:, a + 1] for a in (0, 2, 5, 8, 11, 14, 17)]
            year, month = two[0] * 100 + two[1], two[2]
            # Days from the civil date (Howard Hinnant's algorithm): the year starts in March.
            year = year - (month <= 2)
            era = year // 400
            of_era = year - era * 400
            of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + two[3] - 1
            day = era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _EPOCH_DAY
            whole = day * 86400 + two[4] * 3600 + two[5] * 60 + two[6]
            fraction = sum((digits[:, 20 + k] * 10.0 ** -(k + 1) for k in range(width - 20)), np.zeros(len(texts)))
            out: list[float] = (whole + np.round(fraction, 6)).tolist()
            return out
    return [float("nan") if (when := seconds(text)) is None else when for text in texts]
