"""StyleGAN2/3 and EDM: `stats.jsonl` ({num, mean, std} a tick) and `metric-*.jsonl`. They count images, in kimg."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import blocks, first_objects
from wheeltapper.reading._jsonl import as_float, objects
from wheeltapper.reading._table import Stated, TableBuilder
from wheeltapper.reading.record import Checkpoint, ClockName, Floats, Note, Reading

FORMAT = "StyleGAN JSON lines"
STATS = "StyleGAN stats.jsonl"
METRIC = "StyleGAN metric jsonl"
POSITION = "Progress/kimg"
_SNAPSHOT = re.compile(r"(\d{4,})(?=\.\w+$|$)")


def sniff(head: Head) -> float:
    rows = first_objects(head, 6)
    if rows and all("results" in row and "metric" in row for row in rows):
        return 0.97
    if rows and any(_is_moments(value) for value in rows[0].values()):
        return 0.97 if POSITION in rows[0] else 0.8
    if not rows and head.data.startswith(b'{"') and b'"mean":' in head.data[:400] and b'"num":' in head.data[:400]:
        return 0.8  # one line longer than the head
    return 0.0


def _is_moments(value: object) -> bool:
    return isinstance(value, dict) and "mean" in value and "num" in value


def read(path: Path) -> list[Reading]:
    builder = TableBuilder(str(path))
    snapshots: list[Checkpoint] = []
    metric = False
    for first, data in blocks(path, builder.notes):
        lines = data.split(b"\n")
        for i, raw in enumerate(lines):
            text = raw.strip()
            if not text:
                continue
            for row in objects(text, first + i, builder, last=i == len(lines) - 1):
                if isinstance(row.get("results"), dict):
                    metric = True
                    _result(row, first + i, builder, snapshots)
                else:
                    builder.add(first + i, _moments(row, builder, first + i))
        builder.flush()
    table = builder.table()
    others: dict[ClockName, Floats] = {}
    clock: ClockName = "row"
    at = np.arange(len(table), dtype=np.float64)
    kimg = table.column(POSITION)
    if kimg is not None and bool(np.isfinite(kimg).any()):
        clock, at = "sample", kimg * 1000.0
    stamp = table.column("timestamp")
    if stamp is not None:
        others["second"] = stamp
    skip = {POSITION, "Progress/tick", "timestamp", "total_time", "num_gpus"}
    stated = Stated(window="eval", split="val") if metric else Stated(window="window")
    points = table.points(clock, at, others, skip=skip, stated=stated)
    facts = table.fact("n_gpus", "num_gpus")
    notes = [] if metric or not len(table) else [Note("of {num, mean, std}, the means are kept", table.file)]
    reading = table.reading(METRIC if metric else STATS, points, facts=facts, notes=notes)
    return [
        Reading(
            reading.file, reading.format, points, facts=reading.facts, events=reading.events,
            checkpoints=tuple(snapshots), notes=reading.notes,
        )
    ]  # fmt: skip


def _moments(row: dict[str, Any], builder: TableBuilder, line: int) -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if isinstance(value, dict):
            mean, num = value.get("mean"), value.get("num")
            if num == 0:  # nothing was collected in this tick: its mean is NaN, and says nothing
                builder.count("{n} values without a sample in their tick left out", line, "info")
            elif isinstance(mean, (int, float)):
                yield name, as_float(mean)
        elif isinstance(value, (int, float)):
            yield name, as_float(value)
        elif isinstance(value, str):
            builder.text(name, value)


def _result(row: dict[str, Any], line: int, builder: TableBuilder, snapshots: list[Checkpoint]) -> None:
    values = [(str(name), float(v)) for name, v in row["results"].items() if isinstance(v, (int, float))]
    snapshot = row.get("snapshot_pkl")
    if isinstance(snapshot, str):
        found = _SNAPSHOT.search(snapshot)
        score = values[0] if values else None
        snapshots.append(Checkpoint(snapshot, exists=False, metric=score, note="snapshot_pkl"))
        if found:
            values.append((POSITION, float(found[1][-12:])))
    beside = ("timestamp", "total_time", "num_gpus")
    values += [(name, float(row[name])) for name in beside if isinstance(row.get(name), (int, float))]
    builder.add(line, values)
