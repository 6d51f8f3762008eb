"""The OpenAI logger's `progress.csv` (baselines, improved-diffusion and what grew from them).

Keys are sorted into columns as they first appear; a new key rewrites the header and pads older rows.
Most values are means since the last row.
"""

from __future__ import annotations

from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import header_of
from wheeltapper.reading._clocks import reading_by_clocks
from wheeltapper.reading._csv import read_table
from wheeltapper.reading._table import Stated
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import Reading

FORMAT = "OpenAI logger progress.csv"
BASELINES = {"eprewmean", "nupdates", "serial_timesteps", "explained_variance", "misc/explained_variance"}


def sniff(head: Head) -> float:
    header = set(header_of(head))
    if {"step", "samples"} <= header:
        return 0.9
    if header & BASELINES:
        return 0.85
    return 0.5 if head.name == "progress.csv" and len(header) > 2 else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [reading_by_clocks(read_table(path, tail), FORMAT, _stated)]


def _stated(name: str) -> Stated:
    return Stated(window="window") if "loss" in name or name == "mse" or "grad_norm" in name else Stated()
