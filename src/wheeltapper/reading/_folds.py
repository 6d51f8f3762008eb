"""Folds of a cross-validation that one log tells one after the other: each is a training of its own.

    [fold0] Ep 25/25 ... val_rmse=0.1916
    [fold1] Ep 01/25 ... val_rmse=0.8957          ===== Fold 2 / 5 =====

Only a log whose positions fall is looked at again; it is cut where the next fold is first named, if its epochs or steps begin
anew there.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from wheeltapper.reading.record import Points, Reading

MOST_BYTES = 64 << 20  # a log of folds is printed by epochs; a larger file is not read a second time
MOST_FOLDS = 100
LEAST = 3  # values of a series of each fold
SEEN = 120  # characters of a line in which its fold is told
_FOLD = re.compile(r"(?i)(?<![a-z])fold[ _#:=\[(]{0,3}(\d{1,3})(?![\d.])")


def by_fold(path: Path, readings: list[Reading]) -> list[Reading]:
    """The readings, with that of several folds cut into one for each."""
    if len(readings) != 1 or readings[0].key is not None or not any(_falls(p) for p in readings[0].points):
        return readings
    starts = _starts(path)
    if len(starts) < 2:
        return readings
    reading = readings[0]
    bounds = [0, *(line for _, line in starts[1:]), np.inf]
    out = []
    for i, (fold, _) in enumerate(starts):
        low, high = bounds[i], bounds[i + 1]
        points = tuple(part for p in reading.points if (part := _between(p, low, high)) is not None)
        events = tuple(e for e in reading.events if low <= (e.line or 0) < high)
        if not any(len(p.at) >= LEAST for p in points) or any(_falls(p) for p in points):
            return readings  # not one training a fold: the whole is told as it stands
        out.append(replace(reading, points=points, events=events, key=f"fold {fold}"))
    return out


def _falls(p: Points) -> bool:
    return p.clock in ("epoch", "step") and len(p.at) > LEAST and bool(np.any(np.diff(p.at) < 0))


def _between(p: Points, low: float, high: float) -> Points | None:
    here = (p.lines >= low) & (p.lines < high)
    if not here.any():
        return None
    clocks = {name: track[here].copy() for name, track in p.clocks.items()}
    return replace(p, values=p.values[here].copy(), at=p.at[here].copy(), lines=p.lines[here].copy(), clocks=clocks)


def _starts(path: Path) -> list[tuple[int, int]]:
    """The folds with the line that names each first; none where they do not come one after the other."""
    starts: list[tuple[int, int]] = []
    if path.stat().st_size > MOST_BYTES:
        return []
    with path.open("rb") as file:
        for n, line in enumerate(file, 1):
            if b"old" not in line:
                continue
            found = _FOLD.search(line[:SEEN].decode("utf-8", "replace"))
            if found is None or (starts and starts[-1][0] == int(found[1])):
                continue
            if any(fold == int(found[1]) for fold, _ in starts) or len(starts) >= MOST_FOLDS:
                return []  # a summary of all folds, or folds that take turns
            starts.append((int(found[1]), n))
    return starts
