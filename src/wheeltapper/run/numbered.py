"""One row a file: metrics_epoch_0.json, metrics_epoch_1.json ... are the rows of one table.

AllenNLP and many scripts write the results of every epoch to a file of its own. Alone each is a summary; together, in the order
of the epochs or steps that they tell, they are the curves of the run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wheeltapper.reading.record import Note, Points, Reading

LEAST = 3  # files
_NUMBER = re.compile(r"\d+")


def rows_as_one(readings: Sequence[Reading]) -> list[Reading]:
    """The readings, with files of one row each that only differ by a number as one."""
    families: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for i, r in enumerate(readings):
        if r.key is None and r.points and all(len(p.at) == 1 and p.clock in ("epoch", "step") for p in r.points):
            families[(r.format, str(Path(r.file).parent), _NUMBER.sub("#", Path(r.file).name))].append(i)
    joined: dict[int, Reading] = {}
    gone: set[int] = set()
    for members in families.values():
        order = sorted(members, key=lambda i: float(readings[i].points[0].at[0]))
        places = [float(readings[i].points[0].at[0]) for i in order]
        if len(order) >= LEAST and len(set(places)) == len(places):
            joined[members[0]] = _one([readings[i] for i in order])
            gone |= set(members[1:])
    return [joined.get(i, r) for i, r in enumerate(readings) if i not in gone]


def _one(rows: list[Reading]) -> Reading:
    columns: dict[tuple[Any, ...], list[Points]] = defaultdict(list)
    for r in rows:
        for p in r.points:
            columns[(p.name, p.split, p.about, p.clock, p.unit)].append(p)
    note = Note(f"{len(rows)} files of one row each are read as one table", rows[0].file)
    return replace(rows[0], points=tuple(map(_column, columns.values())), notes=(*rows[0].notes, note))


def _column(parts: list[Points]) -> Points:
    clocks = {
        name: np.concatenate([p.clocks[name] for p in parts])
        for name in parts[0].clocks
        if all(name in p.clocks for p in parts)
    }
    return replace(
        parts[0],
        values=np.concatenate([p.values for p in parts]),
        at=np.concatenate([p.at for p in parts]),
        lines=np.arange(1, len(parts) + 1, dtype=np.int64),
        clocks=clocks,
    )
