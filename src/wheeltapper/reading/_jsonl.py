"""JSON lines into a Table: fast where the rows repeat their keys, line by line where they do not.

msgspec decodes a whole block into a generated Struct; it refuses bare NaN, unknown keys and damage. A bare
NaN is replaced by a mark and the block is tried again, an unknown key widens the Struct, and what is left
is read line by line with `json`, so that one bad line costs one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from wheeltapper.reading._blocks import CONFLICT, CONFLICT_NOTE, BlockFeed
from wheeltapper.reading._table import HOLE, NAN_MARK, NEG_MARK, POS_MARK, Table, TableBuilder, column_of
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import number
from wheeltapper.reading.record import Floats

DEPTH_LIMIT = 100  # issue 2: deeper nesting is no log row; noted and skipped
LIST_LIMIT = 64  # a longer list in a row is a histogram or a prediction, not a set of metrics
FEW_OBJECTS = 4  # parameter groups, heads: more objects in one row are rows of their own
SMALL = 1 << 14  # bytes; halving further costs more than reading line by line
STRUCT_LIMIT = 600  # keys of one Struct; above it rows are dictionaries of data, and go line by line

# Replaced wherever they stand, which is ten times faster than a regex that looks around; words are put back.
_MARKS = ((b"-Infinity", NEG_MARK), (b"Infinity", POS_MARK), (b"NaN", NAN_MARK))
_MARK_TEXT = [(word, repr(mark).encode()) for word, mark in _MARKS]
_UNFIT = re.compile(r'["\\\x00-\x1f]')  # a Struct cannot have such a field: rows with one go line by line
_decoder = json.JSONDecoder()


def read_table(path: Path, tail: Tail | None = None) -> Table:
    """All rows of a JSON-lines file. Lists become `name[0]`, ..., objects `name.key`."""
    rows = tail.keep("table", lambda: _Rows(path)) if tail else _Rows(path)
    ended = tail is None or tail.ended
    for first, data in chain(rows.feed.more(), rows.feed.last() if ended else ()):
        _block(data, first, rows.schema, rows.builder)
    return rows.builder.table(keep=tail is not None)


class _Rows:
    """A file as far as it was read."""

    def __init__(self, path: Path) -> None:
        self.builder = TableBuilder(str(path))
        self.schema = _Schema()
        self.feed = BlockFeed(path, self.builder.notes)


def _block(data: bytes, first: int, schema: _Schema, builder: TableBuilder) -> None:
    """At once if possible; else in halves, so that damage slows down only the lines around it."""
    if schema.usable and _fast(data, first, schema, builder):
        return
    middle = data.find(b"\n", len(data) // 2) + 1
    if not schema.usable or len(data) < SMALL or not 0 < middle < len(data):
        _slowly(data, first, builder, schema)
        builder.flush()
        return
    _block(data[:middle], first, schema, builder)
    _block(data[middle:], first + data.count(b"\n", 0, middle), schema, builder)


# ---------------------------------------------------------------- rows that repeat their keys


NUMBER, NULLABLE, LOOSE = 0, 1, 2  # always a number so far; sometimes null; anything else


class _Schema:
    """The Struct for the keys seen so far: plain numbers as floats, everything else as it comes."""

    def __init__(self) -> None:
        self.keys: dict[str, int] = {}
        self.usable = True
        self.decoder: msgspec.json.Decoder[Any] | None = None

    def learn(self, row: dict[str, Any]) -> None:
        for key, value in row.items():
            plain = isinstance(value, (int, float)) and not isinstance(value, bool)
            kind = NUMBER if plain else NULLABLE if value is None else LOOSE
            if kind > self.keys.get(key, -1):
                self.keys[key] = kind
                self.decoder = None
                self.usable = self.usable and not _UNFIT.search(key)
        self.usable = self.usable and len(self.keys) <= STRUCT_LIMIT

    def build(self) -> msgspec.json.Decoder[Any]:
        if self.decoder is None:
            types: tuple[Any, ...] = (float, float | None, Any)
            fields = [
                (f"f{i}", types[kind], msgspec.field(default=HOLE, name=key))
                for i, (key, kind) in enumerate(self.keys.items())
            ]
            row = msgspec.defstruct("Row", fields, forbid_unknown_fields=True, gc=False)
            self.decoder = msgspec.json.Decoder(row)
        return self.decoder

    def of_kind(self, kind: int) -> list[tuple[str, str]]:
        """(key, attribute) of the keys of one kind."""
        return [(key, f"f{i}") for i, (key, k) in enumerate(self.keys.items()) if k == kind]


def _fast(data: bytes, first: int, schema: _Schema, builder: TableBuilder) -> bool:
    """Decode a whole block; False if it has to go line by line."""
    body = data.rstrip()
    if not body.startswith(b"{") or b"\n\n" in body or b"\n\r\n" in body:
        return False
    marked = b"NaN" in body or b"Infinity" in body
    if marked:
        for word, mark in _MARK_TEXT:
            body = body.replace(word, mark)
    for _ in range(8):  # each failure teaches keys; a block that keeps failing is not worth more
        try:
            rows: list[Any] = schema.build().decode_lines(body) if schema.keys else []
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError):
            rows = []
        if rows:
            break
        if not _teach(body, schema):
            return False
    else:
        return False
    count = body.count(b"\n") + 1
    if len(rows) != count:
        return False
    whole: dict[str, Floats] = {}
    plain = schema.of_kind(NUMBER)
    if plain:
        # One tuple a row and one pass over all: half the time of a pass for every column.
        cells: Iterable[Any] = map(attrgetter(*(field for _, field in plain)), rows)
        cells = chain.from_iterable(cells) if len(plain) > 1 else cells
        grid = np.fromiter(cells, np.float64, count * len(plain)).reshape(count, len(plain))
        whole = {key: np.ascontiguousarray(grid[:, i]) for i, (key, _) in enumerate(plain)}
    for key, field in schema.of_kind(NULLABLE):
        values = (HOLE if v is None else v for v in map(attrgetter(field), rows))
        whole[key] = np.fromiter(values, np.float64, count)
    if marked:
        whole = {_as_written(key): _unmarked(column) for key, column in whole.items()}
    base = builder.rows
    inner: dict[str, dict[int, float]] = {}
    for key, field in schema.of_kind(LOOSE):
        for row, value in enumerate(map(attrgetter(field), rows)):
            if value is HOLE or value == HOLE:
                continue
            for name, found in flat(_as_written(key) if marked else key, value):
                if isinstance(found, float):
                    track = whole[name] if name in whole else inner.setdefault(name, {})
                    track[row] = _MARK_VALUE.get(found, found) if marked else found
                else:
                    _say(builder, name, _as_written(found) if marked and found else found, first + row, base + row)
    lines = np.arange(first, first + count, dtype=np.int64)
    builder.add_columns(lines, {**whole, **{name: column_of(track, count) for name, track in inner.items()}})
    return True


_MARK_VALUE = {NAN_MARK: np.nan, POS_MARK: np.inf, NEG_MARK: -np.inf}


def _as_written(text: str) -> str:
    """A word that held the name of a number, put back."""
    for word, mark in _MARK_TEXT:
        text = text.replace(mark.decode(), word.decode())
    return text


def _unmarked(column: Floats) -> Floats:
    for mark, value in _MARK_VALUE.items():
        column[column == mark] = value
    return column


def _teach(body: bytes, schema: _Schema) -> bool:
    """Learn the keys of rows the Struct does not cover; False if nothing new was learnt."""
    before = dict(schema.keys)
    decoder = schema.build() if schema.keys else None
    for seen, line in enumerate(body.split(b"\n")):
        if decoder is not None:
            try:
                decoder.decode_lines(line)
                continue
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError):
                pass
        try:
            row = msgspec.json.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return False  # damage: no schema will help
        if not isinstance(row, dict):
            return False
        schema.learn(row)
        if not schema.usable or seen > 20_000:
            break
        decoder = schema.build()
    return schema.usable and schema.keys != before


# ---------------------------------------------------------------- line by line


def _slowly(data: bytes, first: int, builder: TableBuilder, schema: _Schema | None = None) -> None:
    lines = data.split(b"\n")
    for i, line in enumerate(lines):
        text = line.strip()
        if not text:
            continue
        last = i == len(lines) - 1  # every piece ends with a line end, but the file's last need not
        for row in objects(text, first + i, builder, last=last):
            add_row(builder, first + i, row)
            if schema is not None and schema.usable:
                schema.learn(row)


def objects(line: bytes, number: int, builder: TableBuilder, *, last: bool) -> Iterator[dict[str, Any]]:
    """The JSON objects on one line: usually one; several when a writer forgot a line end."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        yield from _salvage(line.decode("utf-8", "replace"), number, builder, last=last)
        return
    if isinstance(value, dict):
        yield value
    else:
        builder.count("{n} lines are JSON, but not objects", number, "info")


def _salvage(line: str, number: int, builder: TableBuilder, *, last: bool) -> Iterator[dict[str, Any]]:
    start = line.find("{")
    if start < 0:
        conflict = CONFLICT.match(line.encode("utf-8", "replace"))
        what = CONFLICT_NOTE if conflict else "{n} lines are not JSON"
        builder.count(what, number, "repaired" if conflict else "lost")
        return
    found = 0
    while start >= 0:
        try:
            value, end = _decoder.raw_decode(line, start)
        except ValueError:
            if last:
                builder.count("the last line is cut in the middle of a row", number)
            else:
                builder.count("{n} damaged lines left out", number)
            return
        except RecursionError:
            builder.count(f"{{n}} lines are nested deeper than {DEPTH_LIMIT}; left out", number)
            return
        if isinstance(value, dict):
            found += 1
            if found > 1:
                builder.count("{n} lines hold several rows glued together; all are kept", number, "repaired")
            yield value
        start = line.find("{", end)


def add_row(builder: TableBuilder, line: int, row: dict[str, Any]) -> None:
    """A decoded object as a row of the table."""
    numbers: list[tuple[str, float]] = []
    for key, value in row.items():
        if type(value) is float:
            numbers.append((key, value))
            continue
        for name, found in flat(key, value):
            if isinstance(found, float):
                numbers.append((name, found))
            else:
                _say(builder, name, found, line, builder.rows)
    builder.add(line, numbers)


def _say(builder: TableBuilder, name: str, found: str | None, line: int, row: int) -> None:
    if found is None:
        builder.count(f"`{name}` is nested too deep or a list of over {LIST_LIMIT} values; left out", line)
    elif found:
        builder.text(name, found, row)


def as_float(value: float) -> float:
    """A whole number beyond the range of a float, which only a damaged file holds, is infinite."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def flat(name: str, value: Any, depth: int = 0) -> Iterable[tuple[str, float | str | None]]:
    """The numbers and words inside a JSON value. None stands for what is left out for its size.

    >>> list(flat("ap", [0.5, {"s": 1}]))
    [('ap[0]', 0.5), ('ap[1].s', 1.0)]
    """
    if isinstance(value, (float, int)):  # bool too: true is 1
        yield name, as_float(value)
    elif isinstance(value, str):
        parsed = number(value)
        yield name, value if parsed is None else parsed
    elif value is None:
        yield name, ""
    elif depth >= DEPTH_LIMIT or (isinstance(value, list) and len(value) > LIST_LIMIT):
        yield name, None
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(f"{name}.{key}", inner, depth + 1)
    elif len(value) > FEW_OBJECTS and all(isinstance(inner, dict) for inner in value):
        yield name, None  # rows within the row: skorch keeps every batch of an epoch so
    else:
        for i, inner in enumerate(value):
            yield from flat(f"{name}[{i}]", inner, depth + 1)
