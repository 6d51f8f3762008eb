"""MLflow, both stores: `mlruns/` (a file per metric, parameter and tag, read file by file) and `mlflow.db`.

A line of a metric file is "timestamp value [step [dataset digest]]"; MLflow's own reader drops the step of
the longest form. In SQL a NaN is 0 with a flag and an infinity is the largest double.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import BlockFeed, first_rows, whole
from wheeltapper.reading._settings import settings_tree
from wheeltapper.reading._sqlite import columns_of, has_columns, opened, rows_of
from wheeltapper.reading._table import Table, TableBuilder
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import decode, number
from wheeltapper.reading.record import ClockName, Fact, Floats, Note, Points, Reading

FORMAT = "MLflow"
FILES = "MLflow mlruns file"
DATABASE = "MLflow database"
LARGEST = 1.79e308  # the store writes the largest double for an infinity
STEP, SECOND = "\x00step", "\x00second"  # cannot clash with the name of a metric

_LINE = re.compile(r"(\d{12,14}) (\S+)(?: (-?\d+)(?: (\S+) (\S+))?)?\Z")
_RUN_ID = re.compile(r"[0-9a-f]{32}\Z")
_META = re.compile(rb"^artifact_(?:uri|location):", re.MULTILINE)  # of a run; of an experiment


def sniff(head: Head) -> float:
    if has_columns(head, "metrics", "run_uuid", "key", "value", "timestamp"):
        return 0.97
    if head.looks_binary:
        return 0.0
    if head.name == "meta.yaml" and b"lifecycle_stage:" in head.data and _META.search(head.data):
        return 0.97
    rows = first_rows(head, 20)
    if rows and all(_LINE.match(row) for row in rows):
        return 0.95
    return 0.9 if _role(head.path) in ("params", "tags") else 0.0


def _role(path: Path) -> str | None:
    """What a file is by its place: <run id>/metrics/<name>, params, tags. A name may itself hold slashes."""
    parts = path.parts
    for i in range(len(parts) - 2, 0, -1):
        if parts[i] in ("metrics", "params", "tags") and _RUN_ID.match(parts[i - 1]):
            return parts[i]
    return None


def _run_and_name(path: Path) -> tuple[str | None, str]:
    parts = path.parts
    for i in range(len(parts) - 2, 0, -1):
        if parts[i] in ("metrics", "params", "tags") and _RUN_ID.match(parts[i - 1]):
            return parts[i - 1], "/".join(parts[i + 1 :])
    meta = _meta(path.with_name("meta.yaml"), [])  # copied out of its folder, beside its meta.yaml
    run = meta.get("run_id") or meta.get("run_uuid")
    return (str(run) if run else None), path.name


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    with path.open("rb") as file:
        database = file.read(16).startswith(b"SQLite format 3")
    if database:
        return _database(path)
    if path.name == "meta.yaml":
        return [_meta_reading(path)]
    role = _role(path)
    return [_setting(path, role) if role in ("params", "tags") else _metric(path, tail)]


# ---------------------------------------------------------------- files


class _Metric:
    """The file of one metric as far as it was read: its rows, by the data set they are about."""

    def __init__(self, path: Path) -> None:
        self.builders: dict[str | None, TableBuilder] = {}
        self.main = TableBuilder(str(path))
        self.feed = BlockFeed(path, self.main.notes)


def _metric(path: Path, tail: Tail | None) -> Reading:
    run, name = _run_and_name(path)
    read = tail.keep("metric", lambda: _Metric(path)) if tail else _Metric(path)
    main, builders = read.main, read.builders
    for first, data in chain(read.feed.more(), read.feed.last() if tail is None or tail.ended else ()):
        lines = data.split(b"\n")
        for i, raw in enumerate(lines):
            text = raw.decode("utf-8", "replace").strip()
            if not text:
                continue
            found = _LINE.match(text)
            value = number(found[2]) if found else None
            if i == len(lines) - 1:  # every line is written with its end: this one may lack digits
                main.count("the last line is cut; it is left out", first + i)
                continue
            if found is None or value is None:
                main.count("{n} lines are no metric", first + i)
                continue
            builder = builders.setdefault(found[4], TableBuilder(str(path)))
            row = [(name, _infinite(value)), (SECOND, float(found[1]) / 1000)]
            builder.add(first + i, [*row, (STEP, float(found[3]))] if found[3] else row)
    points: list[Points] = []
    for about, builder in builders.items():
        points += _points(builder.table(keep=tail is not None), about)
    notes = main.table(keep=tail is not None).notes or ([] if points else [Note("it holds no metric", str(path))])
    return Reading(str(path), FILES, tuple(points), notes=tuple(notes), key=run)


def _points(table: Table, about: str | None = None) -> tuple[Points, ...]:
    others: dict[ClockName, Floats] = {}
    step, when = table.column(STEP), table.column(SECOND)
    if when is not None:
        others["second"] = when
    row = np.arange(len(table), dtype=np.float64)
    clock: ClockName = "row" if step is None or not bool(np.isfinite(step).all()) else "step"
    points = table.points(clock, row if clock == "row" or step is None else step, others, skip={STEP, SECOND})
    if about is None:
        return points
    return tuple(
        Points(p.name, p.values, p.at, p.clock, p.file, p.lines, p.clocks, about=about, window=p.window)
        for p in points
    )


def _infinite(value: float) -> float:
    return float(np.copysign(np.inf, value)) if abs(value) >= LARGEST else value


def _setting(path: Path, role: str | None) -> Reading:
    run, name = _run_and_name(path)
    notes: list[Note] = []
    value = decode(whole(path, notes))[0].strip()
    file = str(path)
    if role == "tags":
        return Reading(file, FILES, facts=(Fact(f"tag/{name}", value, file),), notes=tuple(notes), key=run)
    tree = settings_tree({name: value}, file, 1, "MLflow parameter")
    return Reading(file, FILES, configs=(tree,) if tree else (), notes=tuple(notes), key=run)


def _meta(path: Path, notes: list[Note]) -> dict[str, Any]:
    """A flat YAML of scalars. Read by the event stream of one mapping, so a bomb of aliases stays small."""
    if not path.is_file() or path.stat().st_size > 1 << 16:
        return {}
    text = decode(whole(path, notes))[0]
    if "&" in text and "*" in text:
        return {}
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        notes.append(Note("meta.yaml is not valid YAML", str(path), level="lost"))
        return {}
    return value if isinstance(value, dict) else {}


def _meta_reading(path: Path) -> Reading:
    notes: list[Note] = []
    meta = _meta(path, notes)
    file = str(path)
    run = meta.get("run_id") or meta.get("run_uuid")
    told = ("name", "run_name", "status", "start_time", "end_time", "experiment_id", "lifecycle_stage")
    names = {"name": "run_name" if run else "experiment"}  # older runs have a name, experiments always
    facts = tuple(Fact(names.get(key, key), meta[key], file) for key in told if meta.get(key) not in (None, ""))
    if not facts:
        notes.append(Note("it says nothing about a run", file))
    return Reading(file, FILES, facts=facts, notes=tuple(notes), key=str(run) if run else None)


# ---------------------------------------------------------------- database


def _database(path: Path) -> list[Reading]:
    file = str(path)
    notes: list[Note] = []
    builders: dict[str, dict[str, TableBuilder]] = defaultdict(dict)
    params: dict[str, dict[str, Any]] = defaultdict(dict)
    facts: dict[str, list[Fact]] = defaultdict(list)
    with opened(path, notes) as db:
        if db is None:
            return [Reading(file, DATABASE, notes=tuple(notes))]
        has = columns_of(db, "metrics")
        if {"key", "value", "timestamp", "run_uuid"} <= set(has):
            step = "step" if "step" in has else "NULL"
            is_nan = "is_nan" if "is_nan" in has else "0"
            query = (
                f"SELECT rowid, run_uuid, key, value, timestamp, {step}, {is_nan} FROM metrics "
                "ORDER BY run_uuid, rowid"  # as written: a step that falls is a restart
            )
            for row in rows_of(db, query, notes, file):
                _add(builders, file, row)
        else:
            notes.append(Note("no table `metrics` as MLflow makes it", file, level="lost"))
        if {"key", "value", "run_uuid"} <= set(columns_of(db, "params")):
            for run, key, value in rows_of(db, "SELECT run_uuid, key, value FROM params", notes, file):
                params[str(run)][str(key)] = value
        if {"key", "value", "run_uuid"} <= set(columns_of(db, "tags")):
            for run, key, value in rows_of(db, "SELECT run_uuid, key, value FROM tags", notes, file):
                facts[str(run)].append(Fact(f"tag/{key}", value, file))
        known = columns_of(db, "runs")
        about = [c for c in ("name", "status", "start_time", "end_time", "experiment_id") if c in known]
        if about and "run_uuid" in known:
            for run, *values in rows_of(db, f"SELECT run_uuid, {', '.join(about)} FROM runs", notes, file):
                named = zip(about, values, strict=True)
                facts[str(run)] += [Fact("run_name" if k == "name" else k, v, file) for k, v in named if v is not None]
    runs = list(dict.fromkeys([*builders, *params, *facts]))
    readings = []
    for i, run in enumerate(runs):
        tables = [builder.table() for builder in builders.pop(run, {}).values()]
        tree = settings_tree(params[run], file, 1, "MLflow parameters") if run in params else None
        said = tuple(notes) if i == 0 else ()
        readings.append(
            Reading(
                file,
                DATABASE,
                points=tuple(p for table in tables for p in _points(table)),
                configs=(tree,) if tree else (),
                facts=tuple(facts.get(run, ())),
                notes=(*said, *(note for table in tables for note in table.notes)),
                key=run,
            )
        )
    return readings or [Reading(file, DATABASE, notes=(*notes, Note("the database holds no run", file)))]


def _add(builders: dict[str, dict[str, TableBuilder]], file: str, row: tuple[Any, ...]) -> None:
    """A builder a metric: rows of one table would be one value and many holes."""
    line, run, key, value, when, step, nan = row
    builder = builders[str(run)].setdefault(str(key), TableBuilder(file))
    if not isinstance(value, (int, float)):
        builder.count(f"{{n}} values of {key} are not numbers", int(line))
        return
    cells = [(str(key), np.nan if nan else _infinite(float(value)))]
    if isinstance(when, (int, float)):
        cells.append((SECOND, float(when) / 1000))
    if isinstance(step, (int, float)):
        cells.append((STEP, float(step)))
    builder.add(int(line), cells)
