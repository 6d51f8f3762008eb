"""Stable-Baselines: `monitor.csv` (an episode a row, after a comment with JSON) and the logger's `progress.csv`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import header_of
from wheeltapper.reading._clocks import reading_by_clocks, said_positions
from wheeltapper.reading._csv import read_table
from wheeltapper.reading._table import Stated
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import ClockName, Fact, Floats, Reading

FORMAT = "Stable-Baselines CSV"
MONITOR = "SB3 monitor.csv"
PROGRESS = "SB3 progress.csv"


def sniff(head: Head) -> float:
    header = header_of(head)
    if header[:3] == ["r", "l", "t"]:
        return 0.98 if head.data.lstrip().startswith(b"#{") else 0.9
    if any(name.startswith(("rollout/", "time/")) for name in header):
        return 0.96 if "time/total_timesteps" in header else 0.7
    return 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    table = read_table(path, tail)
    if "r" in table.columns and "l" in table.columns and "time/total_timesteps" not in table.columns:
        clocks: dict[ClockName, Floats] = {}
        length = table.columns["l"]
        clocks["step"] = np.cumsum(np.where(np.isfinite(length) & (length > 0), length, 0.0))
        if "t" in table.columns:
            clocks["second"] = said_positions(table.columns["t"])
        row = np.arange(len(table), dtype=np.float64)
        points = table.points("row", row, clocks, skip={"t"}, stated=_monitor)
        return [table.reading(MONITOR, points, facts=_first_line(path))]
    return [reading_by_clocks(table, PROGRESS, _progress, skip={"time/iterations"})]


def _monitor(name: str) -> Stated:
    return Stated(window="batch") if name in ("r", "l") else Stated()


def _progress(name: str) -> Stated:
    if name.startswith("rollout/"):
        return Stated(window="running", split="train")  # the mean over the last 100 episodes
    if name.startswith("eval/"):
        return Stated(window="eval", split="val")
    return Stated(split="train") if name.startswith("train/") else Stated()


def _first_line(path: Path) -> list[Fact]:
    """The comment before the header: when it began, and the environment."""
    with path.open("rb") as file:
        line = file.readline(1 << 16)
    try:
        told = json.loads(line.strip().lstrip(b"#"))
    except (ValueError, RecursionError):
        return []
    if not isinstance(told, dict):
        return []
    return [Fact(str(key), value, f"{path}:1") for key, value in told.items() if isinstance(value, (str, int, float))]
