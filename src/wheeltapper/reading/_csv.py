"""Delimited tables into a Table: whole blocks as one JSON list where every cell is a number, else cell by cell.

Once line ends are commas, a clean block is a JSON list without its brackets, and msgspec parses it several
times faster than numpy's loadtxt. Blocks with words, quotes or damage are read row by row.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np

from wheeltapper.reading._blocks import CONFLICT, CONFLICT_NOTE, BlockFeed
from wheeltapper.reading._table import HOLE, NAN_MARK, NEG_MARK, POS_MARK, Table, TableBuilder
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import measure, number
from wheeltapper.reading.record import Event, Floats

DELIMITERS = (",", ";", "\t", "|")
BLANKS = " "  # as a delimiter: any run of blanks
WIDE = "  "  # as a delimiter: two blanks or more, as in a table that is drawn
SMALL = 1 << 14  # bytes; halving further costs more than reading row by row
EMPTY = {"", "-", "--", "na", "n/a", "none", "null", "nil", "<na>"}  # Keras writes NA for a metric it did not take

_HOLE = repr(HOLE).encode()
_WORDS = (
    (b"infinity", b"inf"),
    (b"-inf", repr(NEG_MARK).encode()),
    (b"inf", repr(POS_MARK).encode()),
    (b"-nan", repr(NAN_MARK).encode()),
    (b"nan", repr(NAN_MARK).encode()),
)
_floats = msgspec.json.Decoder(list[float])
# What str() makes of a tensor or a numpy scalar that was never turned into a float.
_WRAPPED = re.compile(r"(?:tensor|array|(?:np|numpy)\.\w+)\(\s*\[?\s*([^\s,\])]+)\s*\]?\s*(?:,[^)]*)?\)\Z")
_NAME = re.compile(r"[^\d\W]|[%#@]")
_WIDE = re.compile(r"\s{2,}")


def read_table(
    path: Path,
    tail: Tail | None = None,
    *,
    delimiter: str | None = None,
    header: Sequence[str] | None = None,
    comment: str | None = "#",
) -> Table:
    """All rows of a delimited file. `header` names the columns of a file that has none of its own."""

    def begin() -> tuple[_Reader, BlockFeed]:
        builder = TableBuilder(str(path))
        return _Reader(builder, delimiter, list(header) if header else None, comment), BlockFeed(path, builder.notes)

    reader, feed = tail.keep("table", begin) if tail else begin()
    for first, data in chain(feed.more(), feed.last() if tail is None or tail.ended else ()):
        reader.block(first, data)
    return reader.builder.table(keep=tail is not None)


class _Reader:
    def __init__(
        self, builder: TableBuilder, delimiter: str | None, header: list[str] | None, comment: str | None
    ) -> None:
        self.builder = builder
        self.delimiter = delimiter
        self.header = header
        self.names = frozenset(header or ())
        self.comment = comment.encode() if comment else None
        self.decimal_comma = False

    def block(self, first: int, data: bytes) -> None:
        start = 0
        while self.header is None and start < len(data):  # up to the header, one line at a time
            end = data.find(b"\n", start) + 1 or len(data)
            start = end if self._opening(first, data[start:end]) else start
            first += 1 if start == end else 0
            if start != end and self.header is not None:
                break
        self._rows(first, data[start:] if start else data)

    def _rows(self, first: int, data: bytes) -> None:
        """At once if possible, by columns if some hold words; else in halves, down to row by row."""
        if not data.strip():
            return
        body = self._clean(data)
        if body is not None and (self._fast(first, body) or self._by_column(first, body)):
            return
        middle = data.find(b"\n", len(data) // 2) + 1
        if len(data) < SMALL or not 0 < middle < len(data):
            self._slowly(first, data)
            self.builder.flush()
            return
        self._rows(first, data[:middle])
        self._rows(first + data.count(b"\n", 0, middle), data[middle:])

    def _opening(self, line: int, raw: bytes) -> bool:
        """Look at a line before the header is known; True if the line is used up."""
        text = raw.strip()
        if not text or (self.comment and text.startswith(self.comment)):
            return True
        if CONFLICT.match(text):
            self.builder.count(CONFLICT_NOTE, line, "repaired")
            return True
        row = text.decode("utf-8", "replace")
        if self.delimiter is None:
            self.delimiter = max(DELIMITERS, key=lambda d: (row.count(d), -DELIMITERS.index(d)))
            if self.delimiter not in row and len(row.split()) > 1:
                self.delimiter = BLANKS
        cells = self._cells(row)
        if self._is_header(cells):
            self._name(cells, line)
            return True
        self.builder.count("the table has no header; columns go by their number", line, "info")
        self._call([f"column {i}" for i in range(1, len(cells) + 1)])
        return False

    def _name(self, cells: list[str], line: int) -> None:
        names: dict[str, int] = {}  # how often each was met, in order
        for i, cell in enumerate(cells, 1):
            name = cell or f"column {i}"
            while name in names:
                names[name] += 1
                name = f"{name} ({names[name]})"
                self.builder.count("a column name stands twice in the header; the second is numbered", line, "info")
            names[name] = 1
        while names and not cells[len(names) - 1] and len(names) > 1:
            names.popitem()  # a delimiter at the end of the header
        self._call(list(names))

    def _call(self, names: list[str]) -> None:
        self.header, self.names = names, frozenset(names)

    def _is_header(self, cells: list[str]) -> bool:
        said = [cell for cell in cells if cell.lower() not in EMPTY]
        words = [cell for cell in said if self._number(cell) is None and not cell.startswith("[")]
        return bool(words) and 2 * len(words) > len(said)

    # ------------------------------------------------------------ blocks of numbers

    def _clean(self, data: bytes) -> bytes | None:
        """Lines of as many cells as the header, cut by commas; None if they are not."""
        assert self.header is not None
        if self.delimiter in (None, BLANKS, WIDE) or self.decimal_comma or b"\n<<<<<<<" in data or b"\n>>>>>>>" in data:
            return None
        body = data.replace(b"\r", b"") if b"\r" in data else data
        body = body[:-1] if body.endswith(b"\n") else body
        if b'"' in body:  # only quotes around whole cells: a comma inside them shows as a cell too many
            body = body.replace(b'"', b"")
        if self.delimiter is not None and self.delimiter != ",":
            if b"," in body:
                return None
            body = body.replace(self.delimiter.encode(), b",")
        return body if _regular(body, len(self.header)) else None

    def _fast(self, first: int, body: bytes) -> bool:
        assert self.header is not None
        width = len(self.header)
        rows = body.count(b"\n") + 1
        values = _numbers(body.replace(b"\n", b","), rows * width)
        if values is None:
            return False
        grid = values.reshape(rows, width)
        self._add(first, rows, {name: np.ascontiguousarray(grid[:, i]) for i, name in enumerate(self.header)})
        return True

    def _by_column(self, first: int, body: bytes) -> bool:
        """Columns of numbers at once, columns with words cell by cell."""
        assert self.header is not None
        if (self.comment and (b"\n" + self.comment in body or body.startswith(self.comment))) or b"[" in body:
            return False
        text = body.decode("utf-8", "replace")
        table = [line.split(",") for line in text.split("\n")]
        if any(row[0].strip() == self.header[0] for row in table):
            return False  # perhaps the header again
        columns: dict[str, Floats] = {}
        for name, cells in zip(self.header, zip(*table, strict=True), strict=True):
            found = _numbers(",".join(cells).encode(), len(cells))
            columns[name] = self._column(name, cells) if found is None else found
        self._add(first, len(table), columns)
        return True

    def _column(self, name: str, cells: tuple[str, ...]) -> Floats:
        base = self.builder.rows
        column = np.full(len(cells), HOLE)
        known: dict[str, float | None] = {}  # words repeat
        for row, raw in enumerate(cells):
            cell = raw.strip()
            if cell.lower() not in EMPTY:
                value = known[cell] if cell in known else known.setdefault(cell, self._number(cell))
                if value is None:
                    self.builder.text(name, cell, base + row)
                else:
                    column[row] = value
                    self._unit(name, cell)
        return column

    def _add(self, first: int, rows: int, columns: dict[str, Floats]) -> None:
        self.builder.add_columns(np.arange(first, first + rows, dtype=np.int64), columns)

    def _unit(self, name: str, cell: str) -> None:
        if cell[-1] in "%BsW" and (found := measure(cell)) is not None:
            self.builder.unit(name, found[1])

    # ------------------------------------------------------------ row by row

    def _slowly(self, first: int, data: bytes) -> None:
        lines = data.split(b"\n")
        for i, raw in enumerate(lines):
            text = raw.strip()
            if not text or (self.comment and text.startswith(self.comment)):
                continue
            line = first + i
            if CONFLICT.match(text):
                self.builder.count(CONFLICT_NOTE, line, "repaired")
                continue
            cut = i == len(lines) - 1  # only the end of the file lacks its line end
            self._row(line, text.decode("utf-8", "replace"), cut=cut)

    def _row(self, line: int, text: str, *, cut: bool) -> None:
        assert self.header is not None
        cells = self._cells(text)
        if self._again(cells, line):
            return
        width = len(self.header)
        if cut and len(cells) < width:
            self.builder.count("the last line is cut in the middle of a row", line)
            return
        if len(cells) < width:
            self.builder.count("{n} rows are shorter than the header", line, "info")
        elif len(cells) > width:
            if any(cell for cell in cells[width:]):
                self.builder.count("{n} rows are longer than the header; the cells without a name are left out", line)
            cells = cells[:width]
        values: list[tuple[str, float]] = []
        words = 0
        for name, cell in zip(self.header, cells, strict=False):
            if cell.lower() in EMPTY:
                continue
            value = self._number(cell)
            if value is not None:
                values.append((name, value))
                self._unit(name, cell)
            elif cell.startswith("[") and (many := _list(cell)):
                values.append((name, many[0]))
                # Several parameter groups: the others only matter where they differ.
                values += [(f"{name}[{i}]", v) for i, v in enumerate(many[1:], 1) if v != many[0]]
            else:
                words += 1
                self.builder.text(name, cell)
        if values or words:
            self.builder.add(line, values)

    def _again(self, cells: list[str], line: int) -> bool:
        """A header in the middle: another launch wrote to the same file, perhaps with other columns."""
        assert self.header is not None
        shared = len(self.names.intersection(cells))
        if not shared or 2 * shared < min(len(cells), len(self.header)) or not self._is_header(cells):
            return False
        if self.builder.rows:
            text = "the header is written again: a new launch appends to the file"
            self.builder.events.append(Event("start", text, self.builder.file, line))
        self.builder.count("the header stands {n} more times in the file", line, "info")
        self._name(cells, line)
        return True

    def _cells(self, row: str) -> list[str]:
        if self.delimiter == BLANKS:
            return row.split()
        if self.delimiter == WIDE:
            return _WIDE.split(row.strip())
        if '"' not in row:
            return [cell.strip() for cell in row.split(self.delimiter)]
        try:
            return [cell.strip() for cell in next(csv.reader([row], delimiter=self.delimiter or ","))]
        except (csv.Error, StopIteration):
            return [cell.strip().strip('"') for cell in row.split(self.delimiter)]

    def _number(self, cell: str) -> float | None:
        if "," in cell and self.delimiter in (";", "\t") and re.fullmatch(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?", cell):
            self.decimal_comma = True  # a table cut by semicolons has decimal commas: 0,25
            return float(cell.replace(",", "."))
        value = number(cell)
        if value is None and cell.endswith(")"):
            inner = _WRAPPED.match(cell)
            value = number(inner[1]) if inner else None
        return value


def _numbers(flat: bytes, count: int) -> Floats | None:
    """The cells between commas if each is a number, empty, or a word for NaN or infinity."""
    marked = b"n" in flat or b"N" in flat
    if marked:
        flat = flat.lower()
        for word, mark in _WORDS:
            flat = flat.replace(word, mark)
    if b",," in flat or flat.startswith(b",") or flat.endswith(b","):
        hole = b"," + _HOLE + b","
        flat = (b"," + flat + b",").replace(b",,", hole).replace(b",,", hole)[1:-1]
    try:
        values = np.array(_floats.decode(b"[" + flat + b"]"), dtype=np.float64)
    except (msgspec.MsgspecError, UnicodeDecodeError, OverflowError):
        return None
    if marked:
        values[values == NAN_MARK] = np.nan
        values[values == POS_MARK] = np.inf
        values[values == NEG_MARK] = -np.inf
    return values if len(values) == count else None


def _regular(body: bytes, width: int) -> bool:
    """Does every line hold `width` cells? Checked over bytes, for a cell too few and one too many cancel out."""
    view = np.frombuffer(body, dtype=np.uint8)
    ends = np.append(np.flatnonzero(view == 10), len(view))
    commas = np.searchsorted(np.flatnonzero(view == 44), ends)
    if width == 1 and (ends[0] == 0 or bool(np.any(np.diff(ends) == 1))):
        return False  # a blank line, not a row with an empty cell
    return bool(commas[0] == width - 1 and np.all(np.diff(commas) == width - 1))


def _list(cell: str) -> list[float] | None:
    """The numbers of a printed list, "[3.5e-08, 3.5e-08]" or numpy's "[1. 2.]"; None if it holds anything else."""
    inner = cell.strip("[]() ")
    parts = [part for part in re.split(r"[,\s]+", inner) if part]
    found = [number(part) for part in parts[:64]]
    if not found or None in found:
        return None
    return [value for value in found if value is not None]


def looks_like_name(cell: str) -> bool:
    """Could the cell be a column's name: has a letter, and is not a number such as nan or 1e5."""
    return bool(_NAME.search(cell)) and number(cell) is None
