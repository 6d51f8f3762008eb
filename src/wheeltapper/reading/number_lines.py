"""The last resort: lines of bare numbers in a text, `(1, 2.31, 0.12)`, `[2.31, 0.12]`, `1,2.31,0.12`, with anything around.

Numbers are columns by their place, or go by the one word on the line above them. What a column holds is never guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._generic import readings_of_table
from wheeltapper.reading._lines import LineFeed
from wheeltapper.reading._table import TableBuilder
from wheeltapper.reading._text import NUMBER, head_text, number, prefix_of
from wheeltapper.reading.record import Reading

FORMAT = "lines of numbers"
LEAST = 5  # lines with as many numbers
MOST_CELLS = 64
_LINE = re.compile(rf"^[\s(\[{{]*(?:tensor\()?{NUMBER}%?(?:[\s,;|/]+{NUMBER}%?)*[\s)\]}},;|]*$")
_CELL = re.compile(NUMBER)
_NAME = re.compile(r"^[^\W\d][\w ./@-]{0,30}:?$")
_NO_LOGS = {".py", ".sh", ".json", ".jsonl", ".yaml", ".yml", ".c", ".h", ".cpp", ".js", ".toml", ".xml", ".html", ".ini", ".cfg"}


def sniff(head: Head) -> float:
    if head.path.suffix.lower() in _NO_LOGS:
        return 0.0
    widths = Counter(len(cells) for line in head_text(head).split("\n")[:2000] if (cells := _cells(line)))
    return 0.02 if widths and max(widths.values()) >= LEAST else 0.0


def read(path: Path) -> list[Reading]:
    feed = LineFeed(path)
    rows: list[tuple[int, str, list[float]]] = []
    above = ""
    for chunks in (feed.more(), feed.last()):
        for chunk in chunks:
            for line, text in zip(chunk.numbers, chunk.lines, strict=True):
                cells = _cells(text)
                if cells:
                    rows.append((line, above, cells))
                above = text.strip().rstrip(":") if _NAME.match(text.strip()) else ""
    shapes = Counter((name, len(cells)) for _, name, cells in rows)
    builder = TableBuilder(str(path))
    builder.notes += feed.notes()
    if not shapes or shapes.most_common(1)[0][1] < LEAST:
        return [Reading(str(path), FORMAT, notes=tuple(builder.notes))]
    wanted = shapes.most_common(1)[0][0]
    for line, name, cells in rows:
        if (name, len(cells)) == wanted:
            names = [name] if name and len(cells) == 1 else [f"column {i}" for i in range(1, len(cells) + 1)]
            builder.add(line, list(zip(names, cells, strict=True)))
    return readings_of_table(builder.table(), FORMAT)


def _cells(line: str) -> list[float]:
    if len(line) > 2000:
        return []
    body = line[prefix_of(line).end :]
    if not _LINE.match(body):
        return []
    found = [number(cell) for cell in _CELL.findall(body)[:MOST_CELLS]]
    return [value for value in found if value is not None]
