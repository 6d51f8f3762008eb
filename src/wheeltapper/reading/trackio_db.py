"""trackio's SQLite project file: rows of metrics as JSON, one Reading per run."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from wheeltapper.reading import Head
from wheeltapper.reading._jsonl import add_row
from wheeltapper.reading._settings import settings_tree
from wheeltapper.reading._sqlite import columns_of, has_columns, opened, rows_of
from wheeltapper.reading._table import TableBuilder
from wheeltapper.reading._text import seconds
from wheeltapper.reading.record import ClockName, Event, Fact, Floats, Note, Reading

FORMAT = "trackio database"
STEP, SECOND = "\x00step", "\x00second"  # cannot clash with the name of a metric


def sniff(head: Head) -> float:
    return 0.95 if has_columns(head, "metrics", "run_name", "step", "metrics") else 0.0


def read(path: Path) -> list[Reading]:
    file = str(path)
    notes: list[Note] = []
    with opened(path, notes) as db:
        if db is None:
            return [Reading(file, FORMAT, notes=tuple(notes))]
        has = columns_of(db, "metrics")
        if not {"run_name", "step", "metrics"} <= set(has):
            notes.append(Note("no table `metrics` with run_name, step and metrics", file, level="lost"))
            return [Reading(file, FORMAT, notes=tuple(notes))]
        key = "run_id" if "run_id" in has else "run_name"
        when = "timestamp" if "timestamp" in has else "NULL"
        builders: dict[str, TableBuilder] = {}
        names: dict[str, str] = {}
        query = f"SELECT id, {key}, run_name, step, {when}, metrics FROM metrics ORDER BY id"
        query = query if "id" in has else query.replace("id,", "rowid,", 1).replace("BY id", "BY rowid")
        for number, run, name, step, stamp, cell in rows_of(db, query, notes, file):
            builder = builders.setdefault(str(run), TableBuilder(file))
            names[str(run)] = str(name)
            row = _object(cell)
            line = number if isinstance(number, int) else builder.rows + 1
            if row is None:
                builder.count("{n} rows hold no JSON object", line)
                continue
            if isinstance(step, (int, float)):
                row[STEP] = float(step)
            at = seconds(stamp) if isinstance(stamp, str) else None
            if at is not None:
                row[SECOND] = at
            add_row(builder, line, row)
        configs = _configs(db, file, notes)
        alerts = _alerts(db, file, notes)
    readings = [
        _reading(builder, run, names[run], configs.get(run), alerts.get(run, []), notes if not i else [])
        for i, (run, builder) in enumerate(builders.items())
    ]
    return readings or [Reading(file, FORMAT, notes=(*notes, Note("no run has logged anything", file)))]


def _reading(
    builder: TableBuilder, run: str, name: str, config: Any, alerts: list[Event], notes: list[Note]
) -> Reading:
    table = builder.table()
    at = table.column(STEP)
    others: dict[ClockName, Floats] = {}
    when = table.column(SECOND)
    if when is not None:
        others["second"] = when
    clock: ClockName = "row" if at is None else "step"
    at = np.arange(len(table), dtype=np.float64) if at is None else at
    points = table.points(clock, at, others, skip={STEP, SECOND})
    told = table.reading(FORMAT, points, notes=notes)
    return Reading(
        told.file,
        FORMAT,
        points,
        configs=(config,) if config else (),
        facts=(Fact("run_name", name, table.file),),
        events=tuple(alerts),
        notes=told.notes,
        key=run,
    )


def _object(cell: object) -> dict[str, Any] | None:
    """Newer versions write NaN as a word, older ones bare; both are numbers to us."""
    if not isinstance(cell, (str, bytes)):
        return None
    try:
        row = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _configs(db: Any, file: str, notes: list[Note]) -> dict[str, Any]:
    has = columns_of(db, "configs")
    if "config" not in has or "run_name" not in has:
        return {}
    key = "run_id" if "run_id" in has else "run_name"
    found = {}
    for number, run, cell in rows_of(db, f"SELECT rowid, {key}, config FROM configs", notes, file):
        values = {k: v for k, v in (_object(cell) or {}).items() if not k.startswith("_")}  # its own notes
        if values:
            found[str(run)] = settings_tree(values, file, number if isinstance(number, int) else 1, "trackio config")
    return found


def _alerts(db: Any, file: str, notes: list[Note]) -> dict[str, list[Event]]:
    has = columns_of(db, "alerts")
    found: dict[str, list[Event]] = defaultdict(list)
    if not {"run_name", "title", "text", "step"} <= set(has):
        return found
    key = "run_id" if "run_id" in has else "run_name"
    query = f"SELECT rowid, {key}, title, text, step FROM alerts ORDER BY rowid"
    for number, run, title, text, step in rows_of(db, query, notes, file):
        said = f"{title}: {text}" if text else str(title)
        at = float(step) if isinstance(step, (int, float)) else None
        line = number if isinstance(number, int) else 1
        found[str(run)].append(Event("warning", said[:500], file, line, at, "step" if at is not None else None))
    return found
