"""Any other JSON lines: every number is a series, placed by the key that counts steps or epochs."""

from __future__ import annotations

from pathlib import Path

from wheeltapper.sources import Head
from wheeltapper.sources._blocks import first_objects
from wheeltapper.sources._generic import readings_of_table
from wheeltapper.sources._jsonl import read_table
from wheeltapper.sources._tail import Tail
from wheeltapper.sources.record import Reading

FORMAT = "JSON lines"


def sniff(head: Head) -> float:
    rows = first_objects(head)
    if rows and any(isinstance(value, (int, float)) for row in rows for value in row.values()):
        return 0.3
    return 0.1 if head.path.suffix.lower() in (".jsonl", ".ndjson") else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return readings_of_table(read_table(path, tail), FORMAT)
