"""Log rows at speed: a reader explains a line once; every line of the same shape is then read by one regex.

A reader gives `explain(body, line) -> Row | None`: which spans of the line are numbers and what they are.
The first explained line becomes a shape: its text with the numbers cut out, as one compiled expression.
When a later line has the same fields but other words between them (an ETA, a host name), the shape widens
at just that place, and only to the characters seen there, so that a new field is never swallowed.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from wheeltapper.sources._text import NO_PREFIX, Prefix, _value, prefix_of, seconds
from wheeltapper.sources.record import Floats, Ints, Window

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
MAX_SHAPES = 200  # a log with more kinds of rows is not a log; further kinds are read without the fast path
MAX_WIDENINGS = 60  # each costs one compilation, about a millisecond


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


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of one line, left to right. `learn=False` when a word on an earlier line changes their
    meaning (a validation block). `last`: of rows at one position only the last counts (a progress bar)."""

    fields: tuple[Field, ...]
    learn: bool = True
    last: bool = False
    anchor: bool = True  # its position also places the lines after it that have none


Explain = Callable[[str, int], Row | None]

_NUM = r"([-+]?+(?:[\d.]++(?:[eE][-+]?+\d++)?+|(?i:nan(?:\(\w+\))?+|inf(?:inity)?+)))"
_NUM_COMMA = r"([-+]?+(?:\d{1,3}(?:,\d{3})++(?:\.\d++)?+|[\d.]++(?:[eE][-+]?+\d++)?+|(?i:nan|inf)))"
_SPACE = re.compile(r"\s+")
_DIGITS = re.compile(r"\d+")


class Table:
    """All rows with the same fields, as columns."""

    def __init__(self, fields: tuple[Field, ...], *, last: bool, anchor: bool) -> None:
        self.fields = fields
        self.last = last
        self.anchor = anchor
        self.constants: dict[str, float] = {}
        self.lines = array("q")
        self.columns = [array("d") for _ in fields]
        self._numbers: list[int] = []
        self._rows: list[tuple[str, ...]] = []

    def put(self, line: int, values: tuple[str, ...]) -> None:
        self._numbers.append(line)
        self._rows.append(values)

    def flush(self) -> None:
        """Turn the rows of this chunk from text into numbers."""
        if not self._rows:
            return
        self.lines.extend(self._numbers)
        for spec, store, texts in zip(self.fields, self.columns, zip(*self._rows, strict=True), strict=True):
            store.extend(_times(texts) if spec.role == "time" else _floats(texts))
        self._numbers.clear()
        self._rows.clear()

    def column(self, role: Role) -> Floats | None:
        for spec, store in zip(self.fields, self.columns, strict=True):
            if spec.role == role:
                return np.frombuffer(store, dtype=np.float64) * spec.scale if len(store) else np.empty(0)
        return None

    def line_numbers(self) -> Ints:
        return np.frombuffer(self.lines, dtype=np.int64).copy() if len(self.lines) else np.empty(0, np.int64)


def _floats(texts: Iterable[str]) -> list[float]:
    try:
        return list(map(float, texts))
    except ValueError:
        return [_value(text) for text in texts]


def _times(texts: tuple[str, ...]) -> list[float]:
    plain = all(len(text) <= 26 and "+" not in text and "Z" not in text for text in (texts[0], texts[-1]))
    if plain and texts[0][4:5] == "-":
        try:
            stamps = np.array("\n".join(texts).replace(",", ".").split("\n"), dtype="datetime64[us]")
            return [float(value) for value in stamps.astype(np.int64) / 1e6]
        except (ValueError, UserWarning, DeprecationWarning):
            pass
    return [float("nan") if (when := seconds(text)) is None else when for text in texts]


@dataclass(slots=True)
class _Gap:
    """The words between two numbers: a fixed head and tail, and the characters seen to vary between them."""

    head: str
    tail: str = ""
    varying: set[str] | None = None

    def widen(self, text: str) -> bool:
        """Make room for `text`; False if nothing had to change."""
        if self.varying is None:
            if text == self.head:
                return False
            head, tail = _shared(self.head, text)
            old = self.head[len(head) : len(self.head) - len(tail)]
            self.head, self.tail, self.varying = head, tail, set(old)
        else:
            head, _ = _shared(self.head, text)
            if len(head) < len(self.head):
                self.varying |= set(self.head[len(head) :])
                self.head = head
            _, tail = _shared(self.tail, text[len(head) :])
            if len(tail) < len(self.tail):
                self.varying |= set(self.tail[: len(self.tail) - len(tail)])
                self.tail = tail
        middle = text[len(self.head) : len(text) - len(self.tail)]
        self.varying |= set(middle)
        return True

    def pattern(self) -> str:
        if self.varying is None:
            return _literal(self.head)
        chars = self.varying
        if any(c.isdigit() for c in chars):
            chars = {c for c in chars if not c.isdigit()}
            inside = r"\d"
        else:
            inside = ""
        inside += "".join(re.escape(c) for c in sorted(chars - {" "})) + r"\s"
        return f"{_literal(self.head)}[{inside}]{{0,200}}?{_literal(self.tail)}"


def _shared(a: str, b: str) -> tuple[str, str]:
    """The common start and the common end of two texts, not overlapping."""
    n = min(len(a), len(b))
    i = 0
    while i < n and a[i] == b[i]:
        i += 1
    j = 0
    while j < n - i and a[-1 - j] == b[-1 - j]:
        j += 1
    return a[:i], a[len(a) - j :] if j else ""


def _literal(text: str) -> str:
    return r"\s*+".join(re.escape(word) for word in text.split(" "))


def _squeeze(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


@dataclass(slots=True)
class _Shape:
    table: Table
    prefix: str
    gaps: list[_Gap]
    commas: list[bool]
    match: Callable[[str], re.Match[str] | None] = field(init=False)
    widened: int = 0

    def __post_init__(self) -> None:
        self.compile()

    def compile(self) -> None:
        # Atomic groups: a hostile line fails after one pass, it cannot make the expression backtrack.
        out = [self.prefix, r"\s*+"]
        for gap, comma in zip(self.gaps, self.commas, strict=False):
            out += ["(?>", gap.pattern(), r"\s*+", _NUM_COMMA if comma else _NUM, r")\s*+"]
        out += [self.gaps[-1].pattern(), r"\s*+"]
        self.match = re.compile("".join(out), re.DOTALL).fullmatch


class RowReader:
    """Feeds on lines; keeps columns. `take(line, text)` answers whether the line was a row."""

    def __init__(self, explain: Explain, *, numbered: bool = False) -> None:
        self._explain = explain
        self._numbered = numbered
        self.tables: dict[tuple[object, ...], Table] = {}
        self._shapes: dict[tuple[object, ...], _Shape] = {}
        self.constants: list[tuple[str, float, int]] = []  # name, value, first line

    def take_all(self, numbers: Iterable[int], lines: list[str]) -> list[tuple[int, str]]:
        """Read the rows of one chunk; what is left are the lines that are not rows, blank ones dropped."""
        left: list[tuple[int, str]] = []
        shapes = list(self._shapes.values())
        match = shapes[0].match if shapes else None
        put = shapes[0].table.put if shapes else None
        for n, text in zip(numbers, lines, strict=True):
            if match is not None and put is not None and (found := match(text)) is not None:
                put(n, found.groups())
                continue
            for shape in shapes:
                if (found := shape.match(text)) is not None:
                    match, put = shape.match, shape.table.put
                    put(n, found.groups())
                    break
            else:
                if not text or text.isspace():
                    continue
                if self._slow(n, text):
                    shapes = list(self._shapes.values())
                else:
                    left.append((n, text))
        for table in self.tables.values():
            table.flush()
        return left

    def _slow(self, n: int, text: str) -> bool:
        prefix = prefix_of(text, numbered=self._numbered)
        row = self._explain(text[prefix.end :], n)
        if row is None and prefix.end:
            row = self._explain(text, n)  # what looked like a logger's prefix was the row itself
            prefix = NO_PREFIX if row else prefix
        if row is None or not row.fields:
            return row is not None
        base = prefix.end
        spans = [(f.start + base, f.end + base) for f in row.fields]
        texts = [text[a:b].strip() for a, b in spans]
        extra: list[Field] = []
        values: list[str] = []
        if prefix.time:
            extra.append(Field("time", *prefix.time, role="time"))
            values.append(text[slice(*prefix.time)])
        if prefix.rank is not None:
            extra.append(Field("rank", 0, 0, role="rank"))
            values.append(str(prefix.rank))
        key = (
            row.last,
            row.anchor,
            tuple(f.role for f in extra),
            *(f.key(t) for f, t in zip(row.fields, texts, strict=True)),
        )
        table = self.tables.get(key)
        if table is None:
            kept = [f for f in row.fields if f.role not in CONSTANT]
            table = self.tables[key] = Table((*extra, *kept), last=row.last, anchor=row.anchor)
            for f, t in zip(row.fields, texts, strict=True):
                if f.role in CONSTANT:
                    table.constants[f.role] = _value(t)
                    self.constants.append((f.role, _value(t), n))
        moving = [(f, t) for f, t in zip(row.fields, texts, strict=True) if f.role not in CONSTANT]
        table.put(n, (*values, *(t for _, t in moving)))
        if row.learn:
            self._learn(key, table, text, prefix, [(f.start + base, f.end + base) for f, _ in moving])
        return True

    def _learn(
        self, key: tuple[object, ...], table: Table, text: str, prefix: Prefix, spans: list[tuple[int, int]]
    ) -> None:
        edges = [prefix.end, *(edge for span in spans for edge in span), len(text)]
        words = [_squeeze(text[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True)]
        commas = ["," in text[a:b] for a, b in spans]
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) < MAX_SHAPES:
                gaps = [_Gap(word) for word in words]
                self._shapes[key] = _Shape(table, _prefix_pattern(text, prefix), gaps, commas)
            return
        if shape.widened >= MAX_WIDENINGS:
            return
        shape.widened += 1
        for gap, word in zip(shape.gaps, words, strict=True):
            gap.widen(word)
        shape.commas = [a or b for a, b in zip(shape.commas, commas, strict=True)]
        shape.prefix = _prefix_pattern(text, prefix)
        shape.compile()


def _prefix_pattern(text: str, prefix: Prefix) -> str:
    """A logger's prefix with its digits let loose; the time stamp and the rank are caught."""
    if not prefix.end:
        return ""
    stop = prefix.end
    a, b = prefix.time or (stop, stop)
    before, stamp, after = text[:a], text[a:b], text[b:stop]
    caught_rank = prefix.rank is None

    def loose(part: str) -> str:
        nonlocal caught_rank
        out = []
        for piece in re.split(r"(\d+)", part):
            if piece.isdigit():
                own = not caught_rank and int(piece) == prefix.rank
                caught_rank = caught_rank or own
                out.append(r"(\d++)" if own else r"\d++")
            else:
                out.append(r"\s*+".join(re.escape(word) for word in _SPACE.split(piece)))
        return "".join(out)

    # The time must come before the rank in the row's values; a rank written first is caught by look-ahead.
    if prefix.time is None:
        return loose(text[:stop])
    stamp_pattern = "(" + _DIGITS.sub(lambda m: rf"\\d{{{len(m[0])}}}", re.escape(stamp)) + ")"
    if prefix.rank is not None and str(prefix.rank) in _DIGITS.findall(before):
        skip = _DIGITS.sub(r"\\d++", re.escape(before))
        return f"(?={skip}{stamp_pattern}){loose(before)}{stamp_pattern.replace('(', '(?:', 1)}{loose(after)}"
    return loose(before) + stamp_pattern + loose(after)
