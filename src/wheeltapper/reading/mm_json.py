"""JSON logs of the OpenMMLab and Detectron2 families: mmcv `.log.json`, mmengine `scalars.json`, `metrics.json`.

mmcv counts `iter` within the epoch. The `iter` of a validation row is the end of the epoch in older versions
and the length of the validation loader in newer ones, so it is only believed where it fits the training
rows. mmengine places validation rows by epoch under the name `step`.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import first_objects
from wheeltapper.reading._clocks import Clocks, clocks_of, counted_anew, said_positions, steps_per_epoch
from wheeltapper.reading._jsonl import read_table
from wheeltapper.reading._table import HOLE, Stated, Table
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import ClockName, Fact, Floats, Note, Points, Reading
from wheeltapper.settings.parse_python import parse_python
from wheeltapper.settings.position import Source
from wheeltapper.settings.tree import ConfigTree

FORMAT = "OpenMMLab / Detectron2 JSON log"
MMCV = "mmdetection .log.json"
MMENGINE = "mmengine scalars.json"
DETECTRON = "detectron2 metrics.json"

HEAD_WORDS = ("env_info", "config", "seed", "exp_name", "mmdet_version", "mmseg_version", "CLASSES", "PALETTE")
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def sniff(head: Head) -> float:
    rows = first_objects(head, 30)
    if not rows:
        return 0.97 if head.data.lstrip().startswith(b'{"env_info"') else 0.0  # a first line over the head's size
    return 0.96 if _family(rows) else 0.0


def _family(rows: list[dict[str, object]]) -> str | None:
    if any("env_info" in row for row in rows) or any(
        "mode" in row and "epoch" in row and "iter" in row for row in rows
    ):
        return MMCV
    if any("step" in row and "iter" in row and "data_time" in row for row in rows):
        return MMENGINE
    if any("iteration" in row and ("total_loss" in row or "eta_seconds" in row) for row in rows):
        return DETECTRON
    return None


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    table = read_table(path, tail)
    if "mode" in table.texts:
        return [_mmcv(table)]
    if "step" in table.columns and "iter" in table.columns:
        return [_mmengine(table)]
    clocks = clocks_of(table)
    points = table.points(clocks.clock, clocks.at, clocks.others, skip=clocks.used, stated=_detectron)
    name = DETECTRON if "iteration" in table.columns else MMCV
    facts, configs = _meta(table)
    return [table.reading(name, points, facts=[*facts, *clocks.facts], configs=configs, words=HEAD_WORDS)]


def _detectron(name: str) -> Stated:
    if "/" in name:  # "bbox/AP", "segm/AP50-person": an evaluator's result
        return Stated(window="eval", split="val")
    if name == "total_loss" or name.startswith("loss"):
        return Stated(window="window", split="train")  # the median over the last 20 iterations
    return Stated()


# ---------------------------------------------------------------- mmcv


def _mmcv(table: Table) -> Reading:
    mode = np.array([""] * len(table), dtype=object)
    for row, cell in table.texts["mode"].items():
        if row < len(mode):
            mode[row] = cell
    train: Mask = mode == "train"
    epoch = said_positions(table.columns["epoch"]) if "epoch" in table.columns else np.ones(len(table))
    inner = said_positions(table.columns["iter"]) if "iter" in table.columns else np.arange(1.0, len(table) + 1)
    clocks = _positions(table, train, (mode == "val") | (mode == "test"), epoch, inner)
    facts, configs = _meta(table)
    note = Note("mmcv rounds what it logs to 5 decimals: an lr of 0 or 1e-05 may be smaller or larger", table.file)
    skip = {"epoch", "iter"}
    told: list[Points] = []
    for split in ("train", "val", "test"):
        rows: Mask = mode == split
        if not bool(rows.any()):
            continue
        # The lr stands on validation rows too; there it repeats the last one.
        hidden = skip if split == "train" or not bool(train.any()) else {*skip, "lr"}
        says = _in_training if split == "train" else Stated("eval", split)
        told += table.points(clocks.clock, clocks.at, clocks.others, skip=hidden, rows=rows, stated=says)
    words = {"mode", *HEAD_WORDS, *(name for name in table.texts if name.endswith("_copypaste"))}
    notes = [note, *clocks.notes]
    return table.reading(MMCV, told, facts=[*facts, *clocks.facts], configs=configs, notes=notes, words=words)


def _in_training(name: str) -> Stated:
    return Stated("batch" if name.startswith(("lr", "momentum", "memory")) else "window", "train")


def _positions(table: Table, train: Mask, val: Mask, epoch: Floats, inner: Floats) -> Clocks:
    """Steps of the run and fractions of epochs for every row."""
    if not bool(train.any()):
        return Clocks("epoch", epoch)
    e, i = epoch[train], inner[train]
    at = np.full(len(epoch), np.nan)
    if counted_anew(e, i):
        per_epoch, how, exact = _per_epoch(e, i, inner[val])
        fact = Fact("steps_per_epoch", int(per_epoch), f"{table.file}: {how}", derived=True)
        at[train] = (e - 1) * per_epoch + i
        at[~train] = epoch[~train] * per_epoch  # validation stands at the end of its epoch
        fraction = np.where(train, epoch - 1 + inner / per_epoch, epoch)
        notes = [] if exact else [Note(f"steps per epoch: {how}", table.file)]
        return Clocks("step", at, {"epoch": fraction}, facts=[fact], notes=notes)
    # One epoch, or an IterBasedRunner, whose iter runs through: validation stands where training stood.
    at[train] = i
    at = said_positions(np.where(np.isnan(at), HOLE, at))
    ends = {float(x) for x in inner[val & (epoch == 1)]} if not bool(np.any(np.diff(e) > 0)) else set()
    if len(ends) == 1 and (end := ends.pop()) >= float(i.max()) and _near(i, end):
        at = np.where(train, at, end)
        fact = Fact("steps_per_epoch", int(end), f"{table.file}: iter of the validation row", derived=True)
        return Clocks("step", at, {"epoch": np.where(train, inner / end, epoch)}, facts=[fact])
    return Clocks("step", at)


def _per_epoch(epoch: Floats, inner: Floats, told: Floats) -> tuple[float, str, bool]:
    low, how = steps_per_epoch(epoch, inner)
    ends = np.unique(told)
    if len(ends) == 1 and low <= ends[0] and _near(inner, float(ends[0])):
        return float(ends[0]), f"iter of the validation rows is {ends[0]:g}, the end of the epoch", True
    return max(low, 1.0), how, False


def _near(train: Floats, end: float) -> bool:
    """Is `end` within one logging interval of the last training row?"""
    gaps = np.diff(np.unique(train))
    every = float(np.median(gaps)) if len(gaps) else float(train.max())
    return 0 <= end - float(train.max()) < max(every, 1.0)


def _meta(table: Table) -> tuple[list[Fact], list[ConfigTree]]:
    """The first line: environment, seed, and the whole configuration as Python text."""
    facts: list[Fact] = []
    configs: list[ConfigTree] = []
    place = f"{table.file}:1"
    for text in _last(table, "env_info"):
        pairs = re.findall(r"^([A-Za-z][\w ,.]{0,40}): (.+)$", text, re.MULTILINE)
        facts.append(Fact("environment", {key.strip(): value.strip() for key, value in pairs}, place))
    for text in _last(table, "config"):
        tree = parse_python(Source(text, table.file))
        configs.append(ConfigTree(table.file, tree.format, tree.leaves, None, tree.problems, "echoed in log"))
    facts += [Fact("exp_name", text, place) for text in _last(table, "exp_name")]
    return [*facts, *table.fact("seed", "seed")], configs


def _last(table: Table, name: str) -> list[str]:
    """The word the last launch wrote there, if any."""
    return table.texts[name].cells[-1:] if name in table.texts else []


# ---------------------------------------------------------------- mmengine


def _mmengine(table: Table) -> Reading:
    step, inner = table.columns["step"], table.columns["iter"]
    train: Mask = inner != HOLE
    at = said_positions(np.where(train, step, HOLE))
    epoch = said_positions(table.columns["epoch"]) if "epoch" in table.columns else None
    others: dict[ClockName, Floats] = {}
    facts: list[Fact] = []
    if epoch is not None and bool(train.any()):
        per_epoch = _from_first_rows(epoch[train], step[train])
        by_epoch: Mask = ~train & (step == epoch) & (step < at)  # validation told by epoch
        if per_epoch:
            at = np.where(by_epoch, step * per_epoch, at)
            how = f"{table.file}: steps at which the epochs begin"
            facts.append(Fact("steps_per_epoch", int(per_epoch), how, derived=True))
            others["epoch"] = at / per_epoch
    by_iter: Mask = ~train & (step != HOLE) & (step >= at)
    at = np.where(by_iter, step, at)
    skip = {"step", "iter", "epoch"}
    told = table.points("step", at, others, skip=skip, rows=train, stated=_in_training)
    told += table.points("step", at, others, skip=skip, rows=~train & (step != HOLE), stated=Stated("eval", "val"))
    return table.reading(MMENGINE, told, facts=facts)


def _from_first_rows(epoch: Floats, step: Floats) -> float | None:
    """Steps per epoch, exact: rows stand at fixed places within an epoch, so two epochs tell its length."""
    numbers, first = np.unique(epoch, return_index=True)
    if len(numbers) < 2:
        return None
    length = np.diff(step[first]) / np.diff(numbers)
    middle = float(np.median(length))
    return middle if middle >= 1 and middle.is_integer() and bool(np.mean(length == middle) > 0.5) else None
