"""Ultralytics: `results.csv` in all generations, and the `results.txt` of YOLOv3 to v7, which has no header.

Its columns are given the names that the same code writes to TensorBoard, so that both tell one run.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import CONFLICT, CONFLICT_NOTE, blocks, first_rows, header_of
from wheeltapper.reading._clocks import reading_by_clocks
from wheeltapper.reading._csv import read_table
from wheeltapper.reading._table import HOLE, Stated, Table, TableBuilder
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import number
from wheeltapper.reading.record import Fact, Note, Reading

FORMAT = "ultralytics results"
TXT = "YOLOv5 results.txt"
CSV = "ultralytics results.csv"

# YOLOv5's train.py: epoch/last, memory, three losses and their sum, labels in the last batch, image size;
# then test.py's P, R, mAP@.5, mAP@.5:.95 and the three losses.
COLUMNS = (
    "gpu_mem", "train/box_loss", "train/obj_loss", "train/cls_loss", "train/total_loss", "labels", "img_size",
    "metrics/precision", "metrics/recall", "metrics/mAP_0.5", "metrics/mAP_0.5:0.95",
    "val/box_loss", "val/obj_loss", "val/cls_loss",
)  # fmt: skip
_ROW = re.compile(r"\s*(\d+)/(\d+)\s+(\S+)((?:\s+\S+){10,13})\s*\Z")


def sniff(head: Head) -> float:
    header = header_of(head)
    if len(header) > 2 and header[0] == "epoch":
        told = sum(name.startswith(("train/", "metrics/", "val/", "x/lr", "lr/")) for name in header)
        if told >= 2 and any(name.startswith("metrics/") for name in header):
            return 0.97
    rows = first_rows(head, 12)
    if rows and all(_fields(row) for row in rows[:-1] or rows):
        return 0.95
    return 0.0


def _fields(row: str) -> list[float] | None:
    found = _ROW.match(row)
    if not found:
        return None
    cells = [number(found[3]), *(number(cell) for cell in found[4].split())]
    return None if None in cells else [cell for cell in cells if cell is not None]


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    with path.open("rb") as file:
        start = file.read(4096)
    if re.match(rb"\s*\d+/\d+\s", start):
        return [_read_txt(path)]
    table = read_table(path, tail)
    _unevaluated(table)
    return [reading_by_clocks(table, CSV, _stated)]


def _unevaluated(table: Table) -> None:
    """With --noval, and while it evolves settings, YOLOv5 evaluates the last epoch only and writes zeros for all others."""
    held = [name for name in table.columns if name.startswith(("val/", "metrics/"))]
    if not any(name.startswith("val/") for name in held):
        return
    empty = np.all([(table.columns[name] == 0) | (table.columns[name] == HOLE) for name in held], axis=0)
    if not bool(empty.any()) or bool(empty.all()):  # zero throughout is an evaluation that finds nothing
        return
    table.columns = {name: np.where(empty, HOLE, c) if name in held else c for name, c in table.columns.items()}
    table.notes.append(Note(f"{int(empty.sum())} rows hold zeros for every score: they were not evaluated", table.file))


def _stated(name: str) -> Stated:
    if name == "gpu_mem":
        return Stated(unit="GB")
    if name.startswith("train/"):
        return Stated(window="epoch", split="train")
    if name.startswith(("val/", "metrics/", "test/")):
        return Stated(window="eval", split="val")
    return Stated()


def _read_txt(path: Path) -> Reading:
    builder = TableBuilder(str(path))
    facts: list[Fact] = []
    for first, data in blocks(path, builder.notes):
        for i, raw in enumerate(data.split(b"\n")):
            line = raw.decode("utf-8", "replace")
            if not line.strip():
                continue
            found, cells = _ROW.match(line), _fields(line)
            if found is None or cells is None:
                what = CONFLICT_NOTE if CONFLICT.match(raw) else "{n} lines are no row"
                builder.count(what, first + i)
                continue
            builder.add(first + i, [("epoch", float(found[1])), *zip(COLUMNS, cells, strict=False)])
            # The row counts to the last epoch, from 0.
            facts[:] = [Fact("total_epochs", int(found[2][:9]) + 1, f"{path}:{first + i}")]
        builder.flush()
    table = builder.table()
    _older(table)
    if "epoch" not in table.columns:
        return table.reading(TXT)
    points = table.points("epoch", table.columns["epoch"], skip={"epoch"}, stated=_stated)
    return table.reading(TXT, points, facts=facts)


def _older(table: Table) -> None:
    """YOLOv3 wrote mAP and F1 where YOLOv5 writes mAP@.5 and mAP@.5:.95; F1 follows from P and R."""
    names = COLUMNS[7:11]
    if not all(name in table.columns for name in names):
        return
    p, r, _, last = (table.columns[name] for name in names)
    with np.errstate(all="ignore"):
        f1 = 2 * p * r / (p + r)
    tried = np.isfinite(f1) & (f1 > 0.01)
    if int(tried.sum()) >= 3 and bool(np.all(np.abs(f1 - last)[tried] < 0.02)):
        table.columns = {("metrics/F1" if name == names[3] else name): c for name, c in table.columns.items()}
