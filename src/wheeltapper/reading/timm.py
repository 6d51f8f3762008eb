"""timm `summary.csv`: one row an epoch. `train_lr` may be a printed list, one LR per parameter group."""

from __future__ import annotations

from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import header_of
from wheeltapper.reading._clocks import reading_by_clocks
from wheeltapper.reading._csv import read_table
from wheeltapper.reading._table import Stated
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import Reading

FORMAT = "timm summary.csv"


def sniff(head: Head) -> float:
    header = header_of(head)
    if "epoch" not in header or "step" in header or any("/" in name for name in header):
        return 0.0
    trains = any(name.startswith("train_") for name in header)
    tests = any(name.startswith("eval_") for name in header)
    if trains and tests:
        return 0.97 if "eval_top1" in header or "eval_loss" in header else 0.85
    return 0.5 if head.name == "summary.csv" and (trains or tests) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [reading_by_clocks(read_table(path, tail), FORMAT, _stated)]


def _stated(name: str) -> Stated:
    if name.startswith("eval_"):
        return Stated(window="eval", split="val")
    if name.startswith("train_") and not name.startswith("train_lr"):
        return Stated(window="epoch", split="train")
    return Stated()
