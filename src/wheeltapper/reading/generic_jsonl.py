"""Any other JSON lines: every number is a series, placed by the key that counts steps or epochs."""

from __future__ import annotations

from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import first_objects
from wheeltapper.reading._generic import readings_of_table
from wheeltapper.reading._jsonl import read_table
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import Reading

FORMAT = "JSON lines"


def sniff(head: Head) -> float:
    rows = first_objects(head)
    if len(rows) == 1 and head.size <= len(head.data) and is_history(rows[0]):
        return 0.0  # one document of curves with a few numbers beside them, and no row
    if rows and any(isinstance(value, (int, float)) for row in rows for value in row.values()):
        return 0.3
    return 0.1 if head.path.suffix.lower() in (".jsonl", ".ndjson") else 0.0


def is_history(row: dict[str, object]) -> bool:
    """Is an object a whole history? Two curves of equal length; a row may hold a short list, such as a rate for each group."""
    lengths = [len(v) for v in row.values() if isinstance(v, list) and v and isinstance(v[0], int | float)]
    return len(lengths) > 1 and max(lengths) > 1 and lengths.count(max(lengths)) > 1


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return readings_of_table(read_table(path, tail), FORMAT)
