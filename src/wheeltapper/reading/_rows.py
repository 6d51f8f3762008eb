"""Log rows at speed: a reader explains a line once; every line of the same shape is then read by one regex.

A reader gives `explain(body, line) -> Row | None`: which spans of the line are numbers and what they are.
The first explained line becomes a shape: its text with the numbers cut out, as one compiled expression.
When a later line has the same fields but other words between them (an ETA, a host name), the shape widens
at just that place, and only to the characters seen there, so that a new field is never swallowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from wheeltapper.reading._columns import CONSTANT, Field, Role, Table
from wheeltapper.reading._text import NO_PREFIX, Prefix, number, prefix_of

__all__ = ["CONSTANT", "Explain", "Field", "Role", "Row", "RowReader", "Table"]

MAX_SHAPES = 200  # a log with more kinds of rows is not a log; further kinds are read without the fast path
NOISE_MET = 20  # the same words so often without being a row or an event: talk, not worth a second look
NOISE_KINDS = 5_000
ROW_LENGTH = 3000  # the longest row of the corpus has 1100 characters; longer lines hold arrays or code
_NOISE, _TELLING = NOISE_MET + 1, NOISE_MET + 2
NOISE_LENGTH = 3001
MAX_WIDENINGS = 60  # each costs one compilation, about a millisecond


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of one line, left to right. `learn=False` when a word on an earlier line changes their
    meaning (a validation block). `last`: of rows at one position only the last counts (a progress bar)."""

    fields: tuple[Field, ...]
    learn: bool = True
    last: bool = False
    anchor: bool = True  # its position also places the lines after it that have none


Explain = Callable[[str, int], Row | None]

_WORD = r"[-+]?(?i:nan(?:\(\w+\))?|inf(?:inity)?)"
_NUM = rf"([-+]?+[\d.][-+.\deE]*+|{_WORD})"  # loose and fast: what is no number is found when it is parsed
_NUM_COMMA = rf"([-+]?+\d{{1,3}}(?:,\d{{3}})++(?:\.\d++)?+|[-+]?+[\d.][-+.\deE]*+|{_WORD})"
_SPACE = re.compile(r"\s+")
_DIGITS = re.compile(r"\d+")


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

    def pattern(self, blank: str, between: str) -> str:
        if self.varying is None:
            return _literal(self.head, between)
        chars = self.varying
        if any(c.isdecimal() for c in chars):
            chars = {c for c in chars if not c.isdecimal()}
            inside = r"\d"
        else:
            inside = ""
        inside += "".join(re.escape(c) for c in sorted(chars - {" "})) + r"\s"
        first = self.tail.strip()[:1]
        sure = first and first not in chars and not first.isdecimal()  # where the tail starts is then never in doubt
        return f"{_literal(self.head, blank)}[{inside}]{{0,200}}{'+' if sure else '?'}{_literal(self.tail, blank)}"


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


def _literal(text: str, blank: str) -> str:
    return blank.join(re.escape(word) for word in text.split(" "))


def _squeeze(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


@dataclass(slots=True)
class _Shape:
    table: Table
    prefix: str
    gaps: list[_Gap]
    commas: list[bool]
    match: Callable[[str], re.Match[str] | None] = field(init=False)
    blank: str = " *+"  # what stands around numbers; matching only spaces is faster where there are no tabs
    exact: bool = True  # words are separated by exactly one space, until a line shows otherwise
    widened: int = 0

    def __post_init__(self) -> None:
        self.compile()

    def compile(self) -> None:
        # Where a gap varies the group is atomic: a hostile line fails after one pass, without backtracking.
        blank = self.blank
        between = " " if self.exact and blank == " *+" else blank
        out = [self.prefix, r"\s*+"]
        for gap, comma in zip(self.gaps, self.commas, strict=False):
            part = gap.pattern(blank, between) + blank + (_NUM_COMMA if comma else _NUM)
            out += [part if gap.varying is None else f"(?>{part})", blank]
        out += [self.gaps[-1].pattern(blank, between), r"\s*+"]
        self.match = re.compile("".join(out), re.DOTALL).fullmatch


class RowReader:
    """Feeds on lines; keeps columns. `take(line, text)` answers whether the line was a row."""

    def __init__(
        self, explain: Explain, *, numbered: bool = False, boring: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._explain = explain
        self._numbered = numbered
        self._boring = boring
        self._met: dict[str, int] = {}
        self._follows = [0]
        self._last = 0
        self.lost = 0  # rows whose text was no number after all
        self.tables: dict[tuple[object, ...], Table] = {}
        self._shapes: dict[tuple[object, ...], _Shape] = {}
        self.constants: list[tuple[str, float, int]] = []  # name, value, first line

    def take_all(self, numbers: Iterable[int], lines: list[str]) -> list[tuple[int, str]]:
        """Read the rows of one chunk; what is left are the lines that are not rows, blank and noise dropped."""
        left: list[tuple[int, str]] = []
        shapes = list(self._shapes.values())
        follows = self._follows  # which shape came after which: logs are periodic
        last = self._last
        for n, text in zip(numbers, lines, strict=True):
            index = follows[last]
            found = shapes[index].match(text) if index < len(shapes) else None
            if found is None:
                for index, shape in enumerate(shapes):
                    found = shape.match(text)
                    if found is not None:
                        follows[last] = index
                        break
                else:
                    if not text or text.isspace():
                        continue
                    words = _DIGITS.sub("0", text) if len(text) < NOISE_LENGTH else ""
                    met = self._met.get(words, 0)
                    if met > NOISE_MET:
                        if met == _TELLING:
                            left.append((n, text))
                    elif self._slow(n, text):
                        shapes = list(self._shapes.values())
                        follows.extend([0] * (len(shapes) - len(follows)))
                    else:
                        left.append((n, text))
                        self._meet(words, met, text)
                    continue
            last = index
            table = shapes[index].table
            table.rows.append(found.groups())
            table.numbers.append(n)
        self._last = last
        self.lost += sum(table.flush() for table in self.tables.values())
        return left

    def _meet(self, words: str, met: int, text: str) -> None:
        """Count a line that is no row by its words. Met often, it is not asked about again: dropped, or kept
        for those who look for events."""
        if words and (met or len(self._met) < NOISE_KINDS):
            done = _NOISE if self._boring(text) else _TELLING
            self._met[words] = done if met == NOISE_MET else met + 1

    def _slow(self, n: int, text: str) -> bool:
        if len(text) > ROW_LENGTH:
            return False
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
                    table.constants[f.role] = number(t) or 0.0
                    self.constants.append((f.role, number(t) or 0.0, n))
        moving = [(f, t) for f, t in zip(row.fields, texts, strict=True) if f.role not in CONSTANT]
        table.numbers.append(n)
        table.rows.append((*values, *(t for _, t in moving)))
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
                blank = r"\s*+" if "\t" in text else " *+"
                self._shapes[key] = _Shape(table, _prefix_pattern(text, prefix), gaps, commas, blank)
            return
        if shape.widened >= MAX_WIDENINGS:
            return
        shape.widened += 1
        before = (shape.commas, shape.prefix, shape.blank)
        shape.commas = [a or b for a, b in zip(shape.commas, commas, strict=True)]
        shape.prefix = _prefix_pattern(text, prefix)
        shape.blank = r"\s*+" if "\t" in text else shape.blank
        widened = [gap.widen(word) for gap, word in zip(shape.gaps, words, strict=True)]
        if not any(widened) and before == (shape.commas, shape.prefix, shape.blank):
            shape.exact = False
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
            if piece.isdecimal():
                own = not caught_rank and int(piece) == prefix.rank
                caught_rank = caught_rank or own
                out.append(r"(\d++)" if own else r"\d++")
            else:
                out.append(r"\s*+".join(re.escape(word) for word in _SPACE.split(piece)))
        return "".join(out)

    # The time must come before the rank in the row's values; a rank written first is caught by look-ahead.
    if prefix.time is None:
        return loose(text[:stop])
    stamp_pattern = f"(.{{{len(stamp)}}})"  # its digits are checked when it is read
    if prefix.rank is not None and str(prefix.rank) in _DIGITS.findall(before):
        skip = _DIGITS.sub(r"\\d++", re.escape(before))
        return f"(?={skip}{stamp_pattern}){loose(before)}{stamp_pattern.replace('(', '(?:', 1)}{loose(after)}"
    return loose(before) + stamp_pattern + loose(after)
