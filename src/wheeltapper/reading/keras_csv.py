"""Keras CSVLogger: epoch, then the metrics in alphabetical order. Appending writes no second header, so a
second training starts with a row whose epoch falls."""

from __future__ import annotations

from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import header_of
from wheeltapper.reading._clocks import reading_by_clocks
from wheeltapper.reading._csv import read_table
from wheeltapper.reading._table import Stated
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import Reading

FORMAT = "Keras CSVLogger"
NO_METRIC = {"epoch", "lr", "learning_rate"}


def sniff(head: Head) -> float:
    header = header_of(head)
    if len(header) < 2 or header[0] != "epoch" or "step" in header or any("/" in name for name in header):
        return 0.0
    metrics = header[1:]
    if not any(name == "loss" or name.endswith("_loss") for name in metrics) or metrics != sorted(metrics):
        return 0.0
    paired = any(name.startswith("val_") and name[4:] in metrics for name in metrics)
    return 0.85 if paired else 0.5 if "loss" in metrics else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [reading_by_clocks(read_table(path, tail), FORMAT, _stated)]


def _stated(name: str) -> Stated:
    if name.startswith("val_"):
        return Stated(window="eval", split="val")
    return Stated() if name in NO_METRIC else Stated(window="epoch", split="train")
