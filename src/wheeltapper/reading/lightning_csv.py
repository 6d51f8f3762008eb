"""Lightning's CSVLogger `metrics.csv`: a row per logging call, so most cells are empty; CRLF line ends."""

from __future__ import annotations

from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import first_rows, header_of
from wheeltapper.reading._clocks import reading_by_clocks
from wheeltapper.reading._csv import read_table
from wheeltapper.reading._table import Stated
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import Reading

FORMAT = "Lightning metrics.csv"


def sniff(head: Head) -> float:
    header = header_of(head)
    if "epoch" not in header or "step" not in header or len(header) < 3:
        return 0.0
    rows = [row.split(",") for row in first_rows(head)[1:]]
    sparse = any(sum(not cell.strip() for cell in row) * 4 >= len(header) for row in rows)
    if head.name == "metrics.csv":
        return 0.9 if sparse else 0.8
    return 0.7 if sparse else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [reading_by_clocks(read_table(path, tail), FORMAT, _stated)]


def _stated(name: str) -> Stated:
    # Lightning forks a name logged both ways: `_step` is one batch, `_epoch` the mean of the epoch.
    if name.endswith("_step"):
        return Stated(window="batch")
    return Stated(window="epoch") if name.endswith("_epoch") else Stated()
