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

from wheeltapper.config.tree import ConfigTree
from wheeltapper.sources.record import ClockName, Event, Fact, Floats, Ints, Note, Points, Reading, Window

HOLE = -7.7701e-301  # no run logs it; as text it survives any number parser unchanged
NAN_MARK = -7.7702e-301  # stand-ins for what JSON cannot say, replaced after parsing
POS_MARK = -7.7703e-301
NEG_MARK = -7.7704e-301
TEXT_LIMIT = 1 << 20  # of one cell: an echoed configuration is some 100 KB
MANY_TEXTS = 1_000_000  # cells of one column that are words; further ones are not kept


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


@dataclass(slots=True)
class Table:
    """Columns over rows. `texts` keeps cells that are not numbers, by column and row."""

    file: str
    lines: Ints
    columns: dict[str, Floats]
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

    def part(self, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Table:
        """The table of some of its rows, without the notes and events, which are the whole file's."""
        place = np.cumsum(rows) - 1
        texts: dict[str, Words] = {}
        for name, words in self.texts.items():
            for row, cell in words.items():
                if row < len(rows) and rows[row]:
                    texts.setdefault(name, Words()).add(int(place[row]), cell)
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Table(self.file, self.lines[rows], columns, texts, units=self.units)

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
        rows: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None,
    ) -> tuple[Points, ...]:
        """Every column as a series. `rows` limits it to some rows. Full columns share their positions."""
        clocks = clocks or {}
        left_out = set(skip)
        out = []
        shared: dict[bytes, tuple[Floats, Ints, dict[ClockName, Floats]]] = {}
        for name, column in self.columns.items():
            if name in left_out:
                continue
            here = column != HOLE
            if rows is not None:
                here &= rows
            key = b"" if bool(here.all()) else np.packbits(here).tobytes()
            if key and not bool(here.any()):
                continue
            if key not in shared:
                pick = here if key else slice(None)
                shared[key] = at[pick], self.lines[pick], {c: track[pick] for c, track in clocks.items()}
            positions, lines, others = shared[key]
            says = stated if isinstance(stated, Stated) else stated(name)
            out.append(
                Points(
                    name=name.strip(),
                    values=column[here] if key else column,
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
        for name, words in self.texts.items():
            if name in left_out or not len(words):
                continue
            first, last = words.cells[0][:60], words.cells[-1][:60]
            shown = f"{first!r} ... {last!r}" if len(words) > 1 else f"{first!r}"
            number = f"{len(words):,} cells" + (" or more" if len(words) == MANY_TEXTS else "")
            line = int(self.lines[words.rows[0]]) if words.rows[0] < len(self.lines) else None
            out.append(Note(f"`{name}`: {number} not numbers ({shown})", self.file, line))
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
        self._parts: dict[str, list[tuple[int, Floats]]] = {}
        self._open: dict[str, list[float]] = {}
        self._open_lines: list[int] = []
        self._open_from = 0
        self._counts: dict[str, tuple[int, int, str]] = {}

    def add(self, line: int, values: Iterable[tuple[str, float]]) -> None:
        """One row."""
        at = len(self._open_lines)
        for name, value in values:
            track = self._open.get(name)
            if track is None:
                track = self._open[name] = []
            if len(track) > at:
                track[at] = value  # the same key twice in one row: the last one counts, as in JSON
                continue
            if len(track) < at:
                track.extend([HOLE] * (at - len(track)))
            track.append(value)
        self._open_lines.append(line)
        self.rows += 1

    def add_columns(self, lines: Ints, columns: Mapping[str, Floats]) -> None:
        """Many rows at once; columns may hold HOLE."""
        self.flush()
        for name, column in columns.items():
            self._parts.setdefault(name, []).append((self.rows, column))
        self._lines.append(lines)
        self.rows += len(lines)
        self._open_from = self.rows

    def text(self, name: str, text: str, row: int | None = None) -> None:
        """A cell of the row that is being built (or of `row`) that is not a number."""
        words = self.texts.setdefault(name, Words())
        if len(words) < MANY_TEXTS:
            words.add(self.rows if row is None else row, text)

    def unit(self, name: str, unit: str) -> None:
        """The unit written after a number; a column that changes its unit has none."""
        self.units[name] = unit if self.units.get(name, unit) == unit else ""

    def count(self, what: str, line: int, level: str = "lost") -> None:
        """Something that happened on a line; told once, with how often. `{n}` in `what` is the count."""
        n, first, _ = self._counts.get(what, (0, line, level))
        self._counts[what] = (n + 1, first, level)

    def flush(self) -> None:
        """Close the rows that were added one by one. Called per block, it keeps Python lists short."""
        n = len(self._open_lines)
        if not n:
            return
        for name, track in self._open.items():
            column = np.full(n, HOLE)
            column[: len(track)] = track
            self._parts.setdefault(name, []).append((self._open_from, column))
        self._lines.append(np.asarray(self._open_lines, dtype=np.int64))
        self._open, self._open_lines = {}, []
        self._open_from = self.rows

    def table(self) -> Table:
        """The finished Table. The builder is empty afterwards: columns are not kept twice."""
        self.flush()
        columns: dict[str, Floats] = {}
        for name in list(self._parts):
            parts = self._parts.pop(name)
            if len(parts) == 1 and len(parts[0][1]) == self.rows:
                columns[name] = parts[0][1]
                continue
            column = np.full(self.rows, HOLE)
            for start, part in parts:
                column[start : start + len(part)] = part
            columns[name] = column
        lines = np.concatenate(self._lines) if self._lines else np.empty(0, dtype=np.int64)
        notes = [*self.notes]
        for what, (n, first, level) in self._counts.items():
            notes.append(Note(what.format(n=n), self.file, first, level))  # type: ignore[arg-type]
        return Table(self.file, lines, columns, self.texts, notes, self.events, self.units)
