"""JSON-lines `log.txt` as DETR, DeiT, MAE and their many descendants write it: one object an epoch.

They evaluate `data_loader_val` and call the result `test_`; so the split is told as validation. Every
launch appends to the same file.
"""

from __future__ import annotations

from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import first_objects
from wheeltapper.reading._clocks import reading_by_clocks
from wheeltapper.reading._jsonl import read_table
from wheeltapper.reading._table import Stated, Table
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import Fact, Note, Reading

FORMAT = "JSON-lines log.txt (DETR/DeiT/MAE)"
SIZES = ("n_parameters", "n_params", "num_parameters")


def sniff(head: Head) -> float:
    rows = first_objects(head)
    if not rows or not all("epoch" in row for row in rows):
        return 0.0
    if any(name in rows[0] for name in SIZES):
        return 0.95
    prefixed = [any(key.startswith(("train_", "test_", "val_")) for key in row) for row in rows]
    return 0.85 if all(prefixed) and not any("step" in row for row in rows) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    table = read_table(path, tail)
    facts, notes = _size(table)
    return [reading_by_clocks(table, FORMAT, _stated, skip=SIZES, facts=facts, notes=notes)]


def _size(table: Table) -> tuple[list[Fact], list[Note]]:
    for name in SIZES:
        facts = table.fact("n_params", name)
        if facts:
            sizes = sorted({float(n) for n in table.said(name)})
            if len(sizes) == 1:
                return facts, []
            listed = ", ".join(f"{n:,.0f}" for n in sizes[:5])
            return facts, [Note(f"launches of models of {len(sizes)} sizes: {listed} parameters", table.file)]
    return [], []


def _stated(name: str) -> Stated:
    if name.startswith(("test_", "val_")):
        return Stated(window="eval", split="val")
    if name.startswith("train_") and not name.startswith(("train_lr", "train_wd")):
        return Stated(window="epoch", split="train")
    return Stated()
