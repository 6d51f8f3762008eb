"""An evaluation that logs its samples or batches, as the one value it comes to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wheeltapper.reading.record import Points

ROWS = 20  # a position, on average: fewer may be several data sets, scores by class, or evaluations of one epoch
SETTLED = 0.3  # of the moves at its beginning: how little a mean moves at its end; batches move alike throughout


def as_evaluations(p: Points) -> Points:
    """Many rows of a held-out score at every position are one evaluation going on ("Sample: 17, Validation mIoU: 0.15").
    A running mean is told by its last row, batches by their mean."""
    begins = np.flatnonzero(np.append(True, np.diff(p.at) != 0)) if len(p.at) else np.empty(0, dtype=np.int64)
    if len(begins) < 3 or len(p.at) < ROWS * len(begins) or p.rank is not None:
        return p
    groups = np.split(p.values, begins[1:])
    moves = [np.abs(np.diff(g)) for g in groups if len(g) >= ROWS and bool(np.isfinite(g).all())]
    quiet = [float(np.mean(m[-(len(m) // 4) :])) <= SETTLED * float(np.mean(m[: len(m) // 4])) for m in moves]
    running = bool(quiet) and float(np.mean(quiet)) > 0.5
    last = np.append(begins[1:], len(p.at)) - 1
    values = p.values[last] if running else np.asarray([float(np.mean(g)) for g in groups])
    clocks = {name: track[last].copy() for name, track in p.clocks.items()}
    return replace(
        p, values=values.copy(), at=p.at[last].copy(), lines=p.lines[last].copy(), clocks=clocks, window="eval"
    )
