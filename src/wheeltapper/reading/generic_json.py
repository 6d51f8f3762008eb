"""A JSON document that is a log: a list of rows, lists of values by name (what `json.dump(history)` leaves), a plain list in a
file that says what it is (`losses.json`), and what TensorBoard's page downloads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import whole
from wheeltapper.reading._clocks import EPOCH, STEP
from wheeltapper.reading._generic import readings_of_table
from wheeltapper.reading._jsonl import add_row, flat
from wheeltapper.reading._measure import names_measure
from wheeltapper.reading._table import TableBuilder
from wheeltapper.reading._text import decode
from wheeltapper.reading.record import Note, Reading

FORMAT = "JSON table"
FEWEST = 2  # values a list must have to be a curve
_NUMBERS = re.compile(rb"\s*\[\s*(?:-?\d|(?i:nan)|-?(?i:inf))")
_TRIPLES = re.compile(rb"\s*\[\s*\[\s*1\d{9}(?:\.\d+)?\s*,\s*\d+\s*,")  # wall time, step, value
_PYTHON = re.compile(r"(?<![\w\"])(nan|-?inf)(?![\w\"])")  # as Python prints a list
_ROWS = re.compile(rb"\s*\[\s*\{\s*\"")
_CURVE = re.compile(rb"\"[^\"]*(?:loss|acc)[^\"]*\"\s*:\s*\[\s*(?:-?\d|NaN|-?Infinity)")  # behind lists of words, too
_LISTS = re.compile(rb"\s*\{[^\[\]]*?\"[^\"]+\"\s*:\s*\[\s*(?:-?\d|NaN|-?Infinity)")


def sniff(head: Head) -> float:
    named = 0.05 if head.path.suffix.lower() == ".json" else 0.0
    if _ROWS.match(head.data) or (named and _TRIPLES.match(head.data)):
        return 0.2 + named
    if _NUMBERS.match(head.data):
        return 0.2 if names_measure(head.path.stem) else 0.0
    if named and _is_row(head):
        return 0.15
    curves = head.data.lstrip()[:1] == b"{" and _CURVE.search(head.data[:8192])
    return 0.15 + named if curves or _LISTS.match(head.data[:8192]) else 0.0


def _is_row(head: Head) -> bool:
    """One object that tells an epoch or a step and a result: a row that a script wrote to a file of its own."""
    if head.size > len(head.data) or not head.data.lstrip().startswith(b"{"):
        return False
    try:
        value = json.loads(head.data)
    except (ValueError, RecursionError):
        return False
    keys = {str(key).lower() for key in value} if isinstance(value, dict) else set()
    return bool(keys & {*EPOCH, *STEP}) and any(map(names_measure, keys))


def read(path: Path) -> list[Reading]:
    file = str(path)
    notes: list[Note] = []
    text = decode(whole(path, notes))[0]
    if _NUMBERS.match(text[:200].encode()) and "]" in text[-200:]:
        text = _PYTHON.sub(lambda found: "NaN" if found[1] == "nan" else found[1].replace("inf", "Infinity"), text)
    try:
        value = json.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        return [Reading(file, FORMAT, notes=(*notes, Note("not valid JSON", file, level="lost")))]
    builder = TableBuilder(file)
    builder.notes += notes
    if isinstance(value, list) and value and isinstance(value[0], int | float):
        value = {path.stem: value} if names_measure(path.stem) else {}
    if isinstance(value, list):
        tag = path.stem.rpartition("-tag-")[2]
        for i, row in enumerate(value, 1):
            if isinstance(row, list) and len(row) == 3:
                row = dict(zip(("wall_time", "step", tag), row, strict=True))
            if isinstance(row, dict):
                add_row(builder, i, row)
            else:
                builder.count("{n} entries are not objects", i)
    elif isinstance(value, dict):
        add_lists(value, builder)
        if not builder.rows:
            add_row(builder, 1, value)
    return readings_of_table(builder.table(), FORMAT)


def add_lists(value: dict[str, Any], builder: TableBuilder) -> None:
    """Each list is a column; entries are numbered, since such a document is mostly on one line."""
    tracks = {name: track for name, track in _tracks(value, "") if len(track) >= FEWEST}
    for i in range(max((len(track) for track in tracks.values()), default=0)):
        row: list[tuple[str, float]] = []
        for name, track in tracks.items():
            if i < len(track):
                row += [(key, found) for key, found in flat(name, track[i]) if isinstance(found, float)]
        builder.add(i + 1, row)


def _tracks(value: dict[str, Any], prefix: str) -> list[tuple[str, list[Any]]]:
    out: list[tuple[str, list[Any]]] = []
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, list) and inner and isinstance(inner[0], (int, float)):
            out.append((name, inner))
        elif isinstance(inner, dict) and prefix.count(".") < 4:
            out += _tracks(inner, f"{name}.")
    return out
