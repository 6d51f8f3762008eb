"""Any other delimited table: every numeric column is a series, placed by the column that counts steps or epochs.

Columns without a header go by their number. One column of numbers goes by the name of its file, where that says what they
are; what a nameless column holds is never guessed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from wheeltapper.reading import Head, head_of
from wheeltapper.reading._blocks import first_rows, header_of
from wheeltapper.reading._csv import BLANKS, DELIMITERS, WIDE, looks_like_name, read_table
from wheeltapper.reading._generic import readings_of_table
from wheeltapper.reading._measure import names_measure
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, number
from wheeltapper.reading.record import Reading

FORMAT = "CSV table"
LEAST = 5  # lines of numbers without names that are a curve
_GAP = re.compile(r"\s{2,}")
_RULE = re.compile(r"[-=\s|+]+\Z")
_NUMBERED = re.compile(rf"\d+:\s+{NUMBER}\Z")


def sniff(head: Head) -> float:
    rows = [row for row in first_rows(head, 20) if not row.startswith("#")]
    if not rows or rows[0].startswith(("{", "<", "[")):
        return 0.0
    suffix = head.path.suffix.lower() in (".csv", ".tsv")
    delimiter = max(DELIMITERS, key=rows[0].count)
    width = rows[0].count(delimiter)
    if _drawn(rows):
        return 0.3
    if width == 0 or _numbered(rows):
        plain = _numbers_between_blanks(rows) or _numbered(rows) or _one_column(rows, head.path.stem)
        return 0.25 if plain else 0.1 if suffix else 0.0
    same = sum(row.count(delimiter) == width for row in rows) / len(rows)
    named = sum(looks_like_name(cell) for cell in header_of(head)) > width / 2
    body = [cell for row in rows[1:] for cell in row.split(delimiter)]
    told = sum(number(cell) is not None for cell in body)
    numeric = bool(body) and 2 * told > sum(bool(cell.strip()) for cell in body)
    if same > 0.8 and numeric and (named or width >= 1):
        return 0.3 if suffix or named else 0.15
    return 0.2 if suffix else 0.0


def _numbers_between_blanks(rows: list[str]) -> bool:
    """A table cut by blanks is only believed if nothing but numbers follows its first line."""
    width = len(rows[0].split())
    body = [row.split() for row in rows[1:]]
    return width > 1 and len(body) > 1 and all(
        len(row) == width and all(number(cell) is not None for cell in row) for row in body
    )


def _drawn(rows: list[str]) -> bool:
    """Columns with two blanks between them under a line of names: what fastai, spaCy and DeepXDE print."""
    names = _GAP.split(rows[0])
    body = [_GAP.split(row) for row in rows[1:] if not _RULE.match(row)]
    if len(names) < 3 or len(body) < 3 or not all(looks_like_name(name) for name in names):
        return False
    alike = [cells for cells in body if len(cells) == len(names) and number(cells[0]) is not None]
    told = sum(number(cell) is not None or cell.startswith("[") for cells in alike for cell in cells)
    return len(alike) == len(body) and 2 * told > len(names) * len(alike)


def _one_column(rows: list[str], stem: str) -> bool:
    """A number a line, in a file that says what they are: `train_loss.txt`."""
    return len(rows) >= LEAST and names_measure(stem) and all(number(row) is not None for row in rows)


def _numbered(rows: list[str]) -> bool:
    """ "123873:	-5.48": a step and its value."""
    return len(rows) >= LEAST and all(_NUMBERED.match(row) for row in rows)


def _behind_hash(rows: list[str]) -> list[str]:
    """The names of the columns where they stand in the comment above the numbers: "# step  rmse_val  rmse_trn"."""
    first = next((i for i, row in enumerate(rows) if not row.startswith("#")), 0)
    width = len(rows[first].split()) if rows else 0
    names = rows[first - 1].lstrip("#").split() if first else []
    numbers = [row for row in rows[first:] if not row.startswith("#")]
    plain = all(number(cell) is not None for row in numbers for cell in row.split())
    return names if plain and width > 1 and len(names) == width and all(map(looks_like_name, names)) else []


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    def begin() -> tuple[str | None, list[str]]:
        head = first_rows(head_of(path), 20)
        rows = [row for row in head if not row.startswith("#")]
        if names := _behind_hash(head):
            return BLANKS, names
        return ":" if _numbered(rows) else WIDE if rows and _drawn(rows) else None, []

    delimiter, names = tail.keep("delimiter", begin) if tail else begin()
    table = read_table(path, tail, delimiter=delimiter, header=names or None)
    readings = readings_of_table(table, FORMAT)
    if names_measure(path.stem) and [p.name for r in readings for p in r.points] in (["column 1"], ["column 2"]):
        readings = [replace(r, points=tuple(replace(p, name=path.stem) for p in r.points)) for r in readings]
    return readings
