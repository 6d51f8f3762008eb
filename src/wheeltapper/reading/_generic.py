"""Readings of a table whose make is not known: rows of several splits or several runs are told apart.

A column `split` that says train and val, or a column `run` that names runs, would otherwise mix two curves
into one sawtooth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from wheeltapper.reading._clocks import EPOCH, STEP, Clocks, clocks_of
from wheeltapper.reading._split_words import SPLITS, split_of
from wheeltapper.reading._table import HOLE, Mask, Stated, Table
from wheeltapper.reading._text import seconds
from wheeltapper.reading.record import Note, Points, Reading

SPLIT_COLUMNS = {"split", "mode", "phase", "stage", "set", "subset", "type", "dataset", "partition", "kind"}
# Columns that say what a row is about; some of their words may name a split.
EVENT_COLUMNS = {"event", "what", "record", "row_type", "msg", "message", "section", "group", "prefix", "source", "category", "job"}
RUN_COLUMNS = {
    "run", "run_id", "run_name", "run_uuid", "uid", "uuid", "experiment", "exp", "exp_name", "trial", "trial_id", "job_id",
    "fold", "seed",
}  # fmt: skip
LEAST_OF_RUN = 3  # rows of each run, on average
MOST_RUNS = 1000
NAMES = {"metric", "metric_name", "key", "tag", "name", "scalar", "measure"}
VALUES = ("value", "val", "scalar_value")
MOST_NAMES = 500
SUBJECTS = (
    "src",
    "dst",
    "node",
    "class",
    "class_id",
    "label",
    "user_id",
    "item_id",
    "image_id",
)  # numbers that are names


def readings_of_table(table: Table, format: str) -> list[Reading]:
    """One Reading, or one per run where a column names several."""
    column, runs = _runs(table)
    if len(runs) < 2:
        return [_reading(table, format, skip=(), key=None, first=True)]
    out = []
    for i, (run, rows) in enumerate(runs.items()):
        part = table.part(rows)
        if i == 0:
            part.notes, part.events = table.notes, table.events
        out.append(_reading(part, format, skip=(column,), key=run, first=i == 0))
    return out


def _reading(table: Table, format: str, *, skip: Iterable[str], key: str | None, first: bool) -> Reading:
    clocks = clocks_of(table)
    if clocks.clock == "row" and (subject := _subject(table)):
        text = f"each row is of another {subject}: a list of results, not the course of a training"
        return table.reading(format, (), notes=[Note(text, table.file)], words=(*table.texts, *table.columns))
    hidden = {*clocks.used, *skip}
    if named := _named_rows(table):
        return _of_named_rows(table, format, clocks, named, key)
    column, splits = _splits(table)
    points: list[Points] = []
    for split, rows in splits.items():
        stated = _stated(split)
        points += table.points(clocks.clock, clocks.at, clocks.others, skip=hidden, rows=rows, stated=stated)
    words = {*hidden, column}
    told = table.reading(format, points, facts=clocks.facts, notes=clocks.notes, words=words)
    if key is None:
        return told
    notes = told.notes if first else tuple(clocks.notes)
    return Reading(told.file, format, told.points, facts=told.facts, events=told.events, notes=notes, key=key)


def _stated(split: str | None) -> Callable[[str], Stated]:
    """What a row of a split says of its columns; a name that states a split itself ("train_bce" beside "auc") is believed."""

    def stated(name: str) -> Stated:
        own = split and (split_of(name) or split)
        return Stated("eval" if own in ("val", "test") else None, own)

    return stated


def _named_rows(table: Table) -> tuple[str, str] | None:
    """The columns of names and of values in a table with a row for each name: step, metric, value."""
    lower = {name.strip().lower(): name for name in table.columns}
    value = next((lower[name] for name in VALUES if name in lower), None)
    names = next((name for name in table.texts if name.strip().lower() in NAMES), None)
    if value is None or names is None or len(set(table.texts[names].cells)) > MOST_NAMES:
        return None
    return names, value


def _of_named_rows(table: Table, format: str, clocks: Clocks, named: tuple[str, str], key: str | None) -> Reading:
    names, value = named
    label = np.full(len(table), "", dtype=object)
    for row, cell in table.texts[names].items():
        label[row] = cell.strip()
    points: list[Points] = []
    for name in dict.fromkeys(label[label != ""].tolist()):
        others = set(table.columns) - {value}
        found = table.points(clocks.clock, clocks.at, clocks.others, skip=others, rows=label == name)
        points += [replace(p, name=name) for p in found]
    told = table.reading(format, points, facts=clocks.facts, notes=clocks.notes, words={*clocks.used, names})
    return replace(told, key=key)


def _subject(table: Table) -> str:
    """What the rows are of, where they are not of one training: models side by side, classes, links of a network. A table
    with a loss or a reward is believed, and so is one whose words are times or repeat."""
    lower = {name.strip().lower(): name for name in table.columns}
    if len(table) < 3 or any(re.search(r"loss|reward|return", name) for name in (*lower, *map(str.lower, table.texts))):
        return ""
    for name, words in table.texts.items():
        cells = [cell.strip() for cell in words.cells]
        whole = name not in table.columns and len(cells) >= 0.9 * len(table)
        if (
            whole
            and len(set(cells)) > 0.8 * len(cells)
            and all(c and seconds(c) is None and c[0].isalpha() for c in cells)
        ):
            return name.strip() or "name"
    return next((word for word in SUBJECTS if word in lower and len(np.unique(table.said(lower[word]))) > 2), "")


def _splits(table: Table) -> tuple[str, dict[str | None, Mask | None]]:
    """The rows of each split, by a column whose words are splits."""
    for name, words in table.texts.items():
        mixed = name.strip().lower() in EVENT_COLUMNS
        if name.strip().lower() not in SPLIT_COLUMNS and not mixed:
            continue
        meant = {cell: _split_in(cell) if mixed else SPLITS.get(cell.strip().lower()) for cell in set(words.cells)}
        if None in meant.values() and not (mixed and {"val", "test"} & set(meant.values())):
            continue
        label = np.full(len(table), "", dtype=object)
        for row, cell in words.items():
            if row < len(label):
                label[row] = meant[cell] or ""
        return name, {(split or None): label == split for split in dict.fromkeys(label.tolist())}
    return "", {None: None}


def _split_in(cell: str) -> str | None:
    """The split that an event is about: "valid", "epoch_end_val", "train step"."""
    found = {SPLITS[word] for word in re.split(r"[^a-z]+", cell.lower()) if word in SPLITS}
    return found.pop() if len(found) == 1 else None


def _runs(table: Table) -> tuple[str, dict[str, Mask]]:
    """The rows of each run, by a column that names runs: on every row, and each on several rows."""
    for name in [*table.texts, *table.columns]:
        if name.strip().lower() not in RUN_COLUMNS or (name in table.texts and name in table.columns):
            continue
        if name in table.texts:
            told = dict(table.texts[name].items())
            labels = [told.get(row) for row in range(len(table))]
        else:
            column = table.columns[name]
            labels = [None if v == HOLE or not np.isfinite(v) else f"{v:g}" for v in column.tolist()]
        if None in labels:
            continue
        array = np.array(labels, dtype=object)
        distinct = dict.fromkeys(str(label) for label in labels)
        if not 2 <= len(distinct) <= min(MOST_RUNS, len(table) // 2):
            continue
        if name not in table.texts:
            distinct = {f"{name}={label}": None for label in distinct}
            return name, {label: array == label.split("=", 1)[1] for label in distinct}
        return name, {label: array == label for label in distinct}
    return _blocks_of_runs(table)


def _blocks_of_runs(table: Table) -> tuple[str, dict[str, Mask]]:
    """The rows of each run by a column of any name, where its words come one after the other and the steps begin anew with each."""
    lower = {name.lower(): name for name in table.columns}
    counter = next((table.column(lower[name]) for name in (*STEP, *EPOCH) if name in lower), None)
    if counter is None or not np.all(np.isfinite(counter)) or not np.any(np.diff(counter) < 0):
        return "", {}
    begins = [0, *(np.flatnonzero(np.diff(counter) < 0) + 1).tolist()]
    for name, words in table.texts.items():
        if len(words) < len(table) or len(set(words.cells)) != len(begins):
            continue
        told = dict(words.items())
        labels = [told.get(row) for row in range(len(table))]
        turns = [i for i in range(1, len(labels)) if labels[i] != labels[i - 1]]
        distinct = dict.fromkeys(labels)
        if None in distinct or turns != begins[1:] or len(distinct) != len(begins) or len(table) < LEAST_OF_RUN * len(begins):
            continue
        array = np.array(labels, dtype=object)
        return name, {str(label): array == label for label in distinct}
    return "", {}
