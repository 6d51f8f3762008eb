"""A YAML document that is a log: a list of rows (`- epoch: 3`, `train: {loss: 0.5}`) or lists of values by name.

A configuration holds lists, too: only rows that count, three of them at least, make a log.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._clocks import EPOCH, STEP
from wheeltapper.reading._generic import readings_of_table
from wheeltapper.reading._table import TableBuilder
from wheeltapper.reading.record import Note, Reading
from wheeltapper.settings.parse import parse_file
from wheeltapper.settings.tree import Leaf

FORMAT = "YAML table"
LEAST = 3
_ROW = re.compile(rf"^[ \t]*-[ \t]+\{{?[ \t]*['\"]?(?:{'|'.join(map(re.escape, (*EPOCH, *STEP)))})['\"]?:[ \t]*\d", re.M)


def sniff(head: Head) -> float:
    if head.path.suffix.lower() not in {".yaml", ".yml"} or head.looks_binary:
        return 0.0
    rows = sum(1 for _ in zip(_ROW.finditer(head.text), range(LEAST), strict=False))
    return 0.65 if rows == LEAST else 0.0  # above a configuration file, which the name says


def read(path: Path) -> list[Reading]:
    file = str(path)
    tree = parse_file(path)
    rows: dict[tuple[object, ...], list[Leaf]] = defaultdict(list)
    for leaf in tree or ():
        spot = next((i for i, part in enumerate(leaf.path) if isinstance(part, int)), None)
        if spot is not None and spot + 1 < len(leaf.path):
            rows[tuple(leaf.path[: spot + 1])].append(leaf)
    builder = TableBuilder(file)
    for head, leaves in rows.items():
        values = [
            ("/".join(map(str, leaf.path[len(head) :])), float(leaf.value))
            for leaf in leaves
            if isinstance(leaf.value, int | float)
        ]
        builder.add(leaves[0].line, values)
    if not rows:
        return [Reading(file, FORMAT, notes=(Note("no rows of numbers were found in it", file),))]
    return readings_of_table(builder.table(), FORMAT)
