"""Any other delimited table: every numeric column is a series, placed by the column that counts steps or epochs."""

from __future__ import annotations

from pathlib import Path

from wheeltapper.sources import Head
from wheeltapper.sources._blocks import first_rows, header_of
from wheeltapper.sources._csv import DELIMITERS, looks_like_name, read_table
from wheeltapper.sources._generic import readings_of_table
from wheeltapper.sources._tail import Tail
from wheeltapper.sources._text import number
from wheeltapper.sources.record import Reading

FORMAT = "CSV table"


def sniff(head: Head) -> float:
    rows = [row for row in first_rows(head, 20) if not row.startswith("#")]
    if not rows or rows[0].startswith(("{", "<", "[")):
        return 0.0
    suffix = head.path.suffix.lower() in (".csv", ".tsv")
    delimiter = max(DELIMITERS, key=rows[0].count)
    width = rows[0].count(delimiter)
    if width == 0:
        blanks = _numbers_between_blanks(rows)
        return 0.25 if blanks else 0.1 if suffix else 0.0
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


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return readings_of_table(read_table(path, tail), FORMAT)
