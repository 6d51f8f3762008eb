"""CSV files that dashboards export: TensorBoard's "Wall time,Step,Value" and W&B's "run - metric" columns."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import header_of
from wheeltapper.reading._clocks import clocks_of, said_positions
from wheeltapper.reading._csv import read_table
from wheeltapper.reading._table import Table
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import ClockName, Floats, Points, Reading

FORMAT = "exported CSV"
TENSORBOARD = "TensorBoard CSV export"
WANDB = "W&B CSV export"
_TENSORBOARD = ["Wall time", "Step", "Value"]
_COLUMN = re.compile(r"(.+?) - (.+?)(__MIN|__MAX)?\Z")


def sniff(head: Head) -> float:
    header = header_of(head)
    if header == _TENSORBOARD:
        return 0.97
    parts = [_COLUMN.match(name) for name in header[1:]]
    if parts and all(parts) and any(part and part[3] for part in parts):
        return 0.95
    return 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    table = read_table(path, tail)
    if "Value" in table.columns and "Step" in table.columns:
        return [_tensorboard(table, path)]
    return _wandb(table)


def _tensorboard(table: Table, path: Path) -> Reading:
    """The tag stands in the file's name only: run-<run>-tag-<tag>.csv, or a name the user chose."""
    tag = path.stem.rpartition("-tag-")[2]
    others: dict[ClockName, Floats] = {}
    if "Wall time" in table.columns:
        others["second"] = said_positions(table.columns["Wall time"])
    at = said_positions(table.columns["Step"])
    points = table.points("step", at, others, skip={"Step", "Wall time"})
    return table.reading(TENSORBOARD, [replace(p, name=tag) for p in points])


def _wandb(table: Table) -> list[Reading]:
    """One Reading per run. The smoothing bounds (__MIN, __MAX) of the same value are left out."""
    clocks = clocks_of(table)
    runs: dict[str, list[Points]] = {}
    for p in table.points(clocks.clock, clocks.at, clocks.others, skip=clocks.used):
        found = _COLUMN.match(p.name)
        if found and not found[3]:
            runs.setdefault(found[1], []).append(replace(p, name=found[2]))
    if not runs:
        return [table.reading(WANDB)]
    first = table.reading(WANDB, [p for points in runs.values() for p in points], notes=clocks.notes)
    return [
        Reading(table.file, WANDB, tuple(points), notes=first.notes if i == 0 else (), key=run)
        for i, (run, points) in enumerate(runs.items())
    ]
