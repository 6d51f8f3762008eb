"""LLaMA-Factory `trainer_log.jsonl`: one object per logging step, with the total and the time left."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import first_objects
from wheeltapper.reading._clocks import clocks_of, duration
from wheeltapper.reading._jsonl import read_table
from wheeltapper.reading._table import Stated
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import Reading

FORMAT = "LLaMA-Factory trainer_log.jsonl"


def sniff(head: Head) -> float:
    rows = first_objects(head)
    if rows and all("current_steps" in row and "total_steps" in row for row in rows):
        return 0.97
    return 0.4 if head.name == "trainer_log.jsonl" else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    table = read_table(path, tail)
    clocks = clocks_of(table)
    spent = table.texts.get("elapsed_time")
    if spent and "second" not in clocks.others:
        track = np.full(len(table), np.nan)
        for row, cell in spent.items():
            spent_here = duration(cell)
            track[row] = np.nan if spent_here is None else spent_here
        clocks.others["second"] = track
    facts = table.fact("total_steps", "total_steps")
    skip = {*clocks.used, "total_steps", "percentage"}
    points = table.points(clocks.clock, clocks.at, clocks.others, skip=skip, stated=_stated)
    words = {"elapsed_time"} if spent else ()
    return [table.reading(FORMAT, points, facts=[*facts, *clocks.facts], notes=clocks.notes, words=words)]


def _stated(name: str) -> Stated:
    if name.startswith(("eval_", "predict_")):
        return Stated(window="eval", split="val")
    return Stated(window="window", split="train") if name == "loss" else Stated()
