"""A table read from rows, and the series it holds.

A cell that says nothing holds HOLE, so that NaN stays data: a run that logged `nan` is not a run that
logged nothing. HOLE never leaves this module's callers; Points have no holes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from sys import intern

import numpy as np

from wheeltapper.reading.record import ClockName, Event, Fact, Floats, Ints, Note, Points, Reading, Window
from wheeltapper.settings.tree import ConfigTree

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]

HOLE = -7.7701e-301  # no run logs it; as text it survives any number parser unchanged
NAN_MARK = -7.7702e-301  # stand-ins for what JSON cannot say, replaced after parsing
POS_MARK = -7.7703e-301
NEG_MARK = -7.7704e-301
TEXT_LIMIT = 1 << 20  # of one cell: an echoed configuration is some 100 KB
MANY_TEXTS = 1_000_000  # cells of one column that are words; further ones are not kept
# A few numbers on each tensor of a large model make some thousand columns. A file with many more names its rows
# by its keys; every column costs about a kilobyte, however little it says.
MOST_COLUMNS = 10_000
MOST_COUNTED = 100_000  # names of columns left out that are told apart to count them
MOST_COUNTS = 200  # kinds of damage, or columns of words, told one by one; a reader of notes stops long before
OPEN_ROWS = 1 << 14  # rows held as Python numbers, which take ten times the memory of a column
THIN = 8  # a column that fewer than one row in so many tells is kept as rows and values


@dataclass(frozen=True, slots=True)
class Stated:
    """What the format itself says about a series, beyond its name."""

    window: Window | None = None
    split: str | None = None
    about: str | None = None
    unit: str | None = None


NOTHING_STATED = Stated()


@dataclass(slots=True)
class Words:
    """The cells of one column that are not numbers, with their rows: 16 bytes each where words repeat."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    cells: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.cells)

    def add(self, row: int, cell: str) -> None:
        self.rows.append(row)
        self.cells.append(intern(cell) if len(cell) < 32 else cell[:TEXT_LIMIT])

    def items(self) -> Iterator[tuple[int, str]]:
        return zip(self.rows, self.cells, strict=True)


@dataclass(frozen=True, slots=True)
class Thin:
    """A column that few rows tell: its memory follows what it says, not the length of the table."""

    rows: Ints
    values: Floats

    def whole(self, length: int) -> Floats:
        column = np.full(length, HOLE)
        column[self.rows] = self.values
        return column


class Columns(Mapping[str, Floats]):
    """Columns by name. A thin one is made whole whenever it is asked for, and not kept so."""

    def __init__(self, length: int, kept: dict[str, Floats | Thin]) -> None:
        self._length = length
        self.kept = kept

    def __getitem__(self, name: str) -> Floats:
        column = self.kept[name]
        return column.whole(self._length) if isinstance(column, Thin) else column

    def __contains__(self, name: object) -> bool:
        return name in self.kept

    def __iter__(self) -> Iterator[str]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)


@dataclass(slots=True)
class Table:
    """Columns over rows. `texts` keeps cells that are not numbers, by column and row."""

    file: str
    lines: Ints
    columns: Mapping[str, Floats]
    texts: dict[str, Words] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    units: dict[str, str] = field(default_factory=dict)  # written after every number of a column

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str) -> Floats | None:
        """A column with NaN where a row says nothing: for positions, which are never NaN themselves."""
        values = self.columns.get(name)
        return None if values is None else np.where(values == HOLE, np.nan, values)

    def said(self, name: str) -> Floats:
        """The values of a column, in row order, without its holes."""
        values = self.columns.get(name)
        return np.empty(0) if values is None else values[values != HOLE]

    def part(self, rows: Mask) -> Table:
        """The table of some of its rows, without the notes and events, which are the whole file's."""
        place = np.cumsum(rows) - 1
        texts: dict[str, Words] = {}
        for name, words in self.texts.items():
            for row, cell in words.items():
                if row < len(rows) and rows[row]:
                    texts.setdefault(name, Words()).add(int(place[row]), cell)
        columns: dict[str, Floats | Thin] = {}
        for name, column in self._kept().items():
            if isinstance(column, Thin):
                here = rows[column.rows]
                columns[name] = Thin(place[column.rows[here]], column.values[here])
            else:
                columns[name] = column[rows]
        lines = self.lines[rows]
        return Table(self.file, lines, Columns(len(lines), columns), texts, units=self.units)

    def _kept(self) -> Mapping[str, Floats | Thin]:
        return self.columns.kept if isinstance(self.columns, Columns) else self.columns

    def fact(self, name: str, column: str) -> list[Fact]:
        """The last finite value of a column that repeats a constant of the run, with its line."""
        values = self.columns.get(column)
        if values is None:
            return []
        spots = np.flatnonzero((values != HOLE) & np.isfinite(values))
        if not len(spots):
            return []
        value = float(values[spots[-1]])
        return [Fact(name, int(value) if value.is_integer() else value, f"{self.file}:{int(self.lines[spots[-1]])}")]

    def points(
        self,
        clock: ClockName,
        at: Floats,
        clocks: Mapping[ClockName, Floats] | None = None,
        *,
        skip: Iterable[str] = (),
        stated: Stated | Callable[[str], Stated] = NOTHING_STATED,
        rows: Mask | None = None,
    ) -> tuple[Points, ...]:
        """Every column as a series. `rows` limits it to some rows. Full columns share their positions."""
        clocks = clocks or {}
        left_out = set(skip)
        out = []
        shared: dict[bytes, tuple[Floats, Ints, dict[ClockName, Floats]]] = {}
        for name, column in self._kept().items():
            if name in left_out:
                continue
            pick, key, values = _said(column, rows)
            if not len(values):
                continue
            if key not in shared:
                shared[key] = at[pick], self.lines[pick], {c: track[pick] for c, track in clocks.items()}
            positions, lines, others = shared[key]
            says = stated if isinstance(stated, Stated) else stated(name)
            out.append(
                Points(
                    name=name.strip(),
                    values=values,
                    at=positions,
                    clock=clock,
                    file=self.file,
                    lines=lines,
                    clocks=others,
                    unit=says.unit or self.units.get(name) or None,
                    split=says.split,
                    about=says.about,
                    window=says.window,
                )
            )
        return tuple(out)

    def text_notes(self, skip: Iterable[str] = ()) -> list[Note]:
        """What the cells that are words say, one Note a column: nothing is lost silently."""
        left_out = set(skip)
        out = []
        told = [(name, words) for name, words in self.texts.items() if name not in left_out and len(words)]
        for name, words in told[:MOST_COUNTS]:
            first, last = words.cells[0][:60], words.cells[-1][:60]
            shown = f"{first!r} ... {last!r}" if len(words) > 1 else f"{first!r}"
            number = f"{len(words):,} cells" + (" or more" if len(words) == MANY_TEXTS else "")
            line = int(self.lines[words.rows[0]]) if words.rows[0] < len(self.lines) else None
            out.append(Note(f"`{name}`: {number} not numbers ({shown})", self.file, line))
        if len(told) > len(out):
            out.append(Note(f"{len(told) - len(out):,} more columns hold cells that are not numbers", self.file))
        return out

    def reading(
        self,
        format: str,
        points: Iterable[Points] = (),
        *,
        facts: Iterable[Fact] = (),
        configs: Iterable[ConfigTree] = (),
        notes: Iterable[Note] = (),
        words: Iterable[str] = (),
    ) -> Reading:
        """What the file told; `words` are columns of text that the reader has already used."""
        told = tuple(points)
        if not told:
            said = "no numbers stand beside the positions of the rows" if len(self) else "it holds no rows of numbers"
            notes = [*notes, Note(said, self.file)]
        return Reading(
            self.file,
            format,
            points=told,
            configs=tuple(configs),
            facts=tuple(facts),
            events=tuple(self.events),
            notes=(*self.notes, *notes, *self.text_notes(words)),
        )


def _said(column: Floats | Thin, rows: Mask | None) -> tuple[Mask | Ints | slice, bytes, Floats]:
    """What picks the rows that a column tells (and `rows` allows), a key of that choice, and the values there."""
    if isinstance(column, Thin):
        if rows is None:
            return column.rows, b"thin" + column.rows.tobytes(), column.values
        here = rows[column.rows]
        return column.rows[here], b"thin" + column.rows[here].tobytes(), column.values[here]
    here = column != HOLE
    if rows is not None:
        here &= rows
    return (slice(None), b"", column) if bool(here.all()) else (here, np.packbits(here).tobytes(), column[here])


def column_of(cells: Mapping[int, float], length: int) -> Floats | Thin:
    """A column of `length` rows from the values of those that tell one."""
    rows = np.fromiter(cells, np.int64, len(cells))
    values = np.fromiter(cells.values(), np.float64, len(cells))
    if len(rows) * THIN >= length:
        return Thin(rows, values).whole(length)
    order = np.argsort(rows)  # two keys of one row may spell the same name
    return Thin(rows[order], values[order])


class TableBuilder:
    """Collects rows, or whole columns of consecutive rows, into a Table."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.notes: list[Note] = []
        self.events: list[Event] = []
        self.texts: dict[str, Words] = {}
        self.units: dict[str, str] = {}
        self.rows = 0
        self._lines: list[Ints] = []
        self._parts: dict[str, list[tuple[int, Floats | Thin]]] = {}
        self._open: dict[str, dict[int, float]] = {}
        self._left_out: set[str] = set()
        self._open_lines: list[int] = []
        self._open_from = 0
        self._counts: dict[str, tuple[int, int, str]] = {}

    def add(self, line: int, values: Iterable[tuple[str, float]]) -> None:
        """One row."""
        at = len(self._open_lines)
        for name, value in values:
            track = self._open.get(name)
            if track is None:
                if not self._takes(name):
                    continue
                track = self._open[name] = {}
            track[at] = value  # the same key twice in one row: the last one counts, as in JSON
        self._open_lines.append(line)
        self.rows += 1
        if len(self._open_lines) >= OPEN_ROWS:
            self.flush()

    def _takes(self, name: str) -> bool:
        """Is there room for a column of this name? One that came early always keeps its place."""
        if name not in self._parts:
            if len(self._parts) >= MOST_COLUMNS:
                if len(self._left_out) < MOST_COUNTED:
                    self._left_out.add(name)
                return False
            self._parts[name] = []
        return True

    def add_columns(self, lines: Ints, columns: Mapping[str, Floats | Thin]) -> None:
        """Many rows at once; columns may hold HOLE, and one that holds nothing else is left out."""
        self.flush()
        for name, column in columns.items():
            if not isinstance(column, Thin):
                here = column != HOLE
                said = int(np.count_nonzero(here))
                if not said:
                    continue
                if said * THIN < len(column):
                    column = Thin(np.flatnonzero(here), column[here])
            if self._takes(name):
                self._parts[name].append((self.rows, column))
        self._lines.append(lines)
        self.rows += len(lines)
        self._open_from = self.rows

    def text(self, name: str, text: str, row: int | None = None) -> None:
        """A cell of the row that is being built (or of `row`) that is not a number."""
        words = self.texts.get(name)
        if words is None:
            if len(self.texts) >= MOST_COLUMNS:
                self.count(f"more than {MOST_COLUMNS:,} columns of words; {{n}} cells of the others are left out", 0)
                return
            words = self.texts[name] = Words()
        if len(words) < MANY_TEXTS:
            words.add(self.rows if row is None else row, text)

    def unit(self, name: str, unit: str) -> None:
        """The unit written after a number; a column that changes its unit has none."""
        self.units[name] = unit if self.units.get(name, unit) == unit else ""

    def count(self, what: str, line: int, level: str = "lost") -> None:
        """Something that happened on a line; told once, with how often. `{n}` in `what` is the count."""
        if what not in self._counts and len(self._counts) >= MOST_COUNTS:
            what, level = "{n} more faults of other kinds", "lost"
        n, first, _ = self._counts.get(what, (0, line, level))
        self._counts[what] = (n + 1, first, level)

    def flush(self) -> None:
        """Close the rows that were added one by one."""
        n = len(self._open_lines)
        if not n:
            return
        for name, cells in self._open.items():
            self._parts[name].append((self._open_from, column_of(cells, n)))
        self._lines.append(np.asarray(self._open_lines, dtype=np.int64))
        self._open, self._open_lines = {}, []
        self._open_from = self.rows

    def table(self, *, keep: bool = False) -> Table:
        """The finished Table. The builder is empty afterwards, for columns are not kept twice, unless more rows are
        to come (`keep`)."""
        self.flush()
        columns: dict[str, Floats | Thin] = {}
        for name in list(self._parts):
            columns[name] = _joined(self._parts.pop(name), self.rows)
        lines = np.concatenate(self._lines) if self._lines else np.empty(0, dtype=np.int64)
        if keep:  # one part each: the next look joins two
            self._parts = {name: [(0, column)] for name, column in columns.items()}
            self._lines = [lines]
        notes = [*self.notes]
        for what, (n, first, level) in self._counts.items():
            notes.append(Note(what.format(n=n), self.file, first or None, level))  # type: ignore[arg-type]
        if self._left_out:
            more = " or more" if len(self._left_out) == MOST_COUNTED else ""
            said = f"more than {MOST_COLUMNS:,} columns; {len(self._left_out):,}{more} that came later are left out"
            notes.append(Note(said, self.file, level="lost"))
        return Table(self.file, lines, Columns(self.rows, columns), self.texts, notes, self.events, self.units)


def _joined(parts: list[tuple[int, Floats | Thin]], length: int) -> Floats | Thin:
    """One column out of its parts, each with the row it begins at."""
    if len(parts) == 1 and not isinstance(parts[0][1], Thin) and len(parts[0][1]) == length:
        return parts[0][1]
    said = sum(len(part.values) if isinstance(part, Thin) else len(part) for _, part in parts)
    if said * THIN >= length:
        column = np.full(length, HOLE)
        for start, part in parts:
            if isinstance(part, Thin):
                column[start + part.rows] = part.values
            else:
                column[start : start + len(part)] = part
        return column
    rows, values = [], []
    for start, part in parts:
        spots = part.rows if isinstance(part, Thin) else np.flatnonzero(part != HOLE)
        rows.append(start + spots)
        values.append(part.values if isinstance(part, Thin) else part[spots])
    return Thin(np.concatenate(rows), np.concatenate(values))
