"""The learning rate climbs again after it had decayed.

## What it sees
A smooth decay that turns and rises to the end of the record, without being a schedule of restarts.

## Why it matters
A cosine schedule that is stepped past its length does not stay at its minimum: torch's climbs back with
twice the period. What was annealed is shaken up again, usually unnoticed.

## How it decides
From the shape of the logged rate: a decay to less than half of its peak that then rises by more than
rounding to at least twice its lowest, and does not fall again. Ill when a validation score got worse
meanwhile, or when it had sunk under 5 % of its peak and ends above 30 %: nobody plans a run to end at a
high rate. Else a watch. Warm restarts (sudden rises, then a new decay) are by design.

## When it is wrong
A deliberate second phase with its own warm-up.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- timm, timm/scheduler/cosine_lr.py (stays at its lowest rate instead).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.simulate.lr_shape import LrShape
from wheeltapper.study.statistics import badness

ID = "lr-rises-again"
LIVE = True
HIGH, LOW = 0.3, 0.05  # of the peak: a rate that had gone and ends high again was not planned to


def look(lr: Series, lr_shape: LrShape, main_metric: Series | None = None, val_loss: Series | None = None) -> Answer:
    turn = lr_shape.rises_from
    if turn is None or lr_shape.restarts:
        return Clear("the learning rate does not rise again")
    low = float(np.nanmin(lr.values[lr.at >= turn])) if np.any(lr.at >= turn) else lr_shape.last
    if lr_shape.last < 2 * max(low, 1e-300) or low > 0.5 * lr_shape.peak:
        return Clear("the learning rate rises again, but hardly")
    index = int(np.searchsorted(lr.at, turn))
    index = min(index, len(lr) - 1)
    score = main_metric if main_metric is not None else val_loss
    worse = _worse_since(score, float(lr.at[index]), lr.clock) if score is not None else ""
    text = (
        f"the learning rate climbs from {low:.3g} to {lr_shape.last:.3g} since {where(lr, index)}, after it had decayed"
    )
    ends_high = lr_shape.last >= HIGH * lr_shape.peak and low <= LOW * lr_shape.peak
    return seen(
        ID, lr, text + (f"; {worse}" if worse else ""), severity="ill" if worse or ends_high else "watch", grade="is", onset=index,
        low=low, last=lr_shape.last,
    )  # fmt: skip


def _worse_since(score: Series, turn: float, clock: str) -> str:
    at = score.on(clock)  # type: ignore[arg-type]
    if at is None:
        return ""
    x = badness(score.values, score.better)
    before, after = x[(at < turn) & score.finite], x[(at >= turn) & score.finite]
    if len(before) < 2 or len(after) < 2:
        return ""
    sigma = float(np.std(before[-max(3, len(before) // 5) :]))
    end = float(np.median(after[-max(1, len(after) // 5) :]))
    if end > before[-max(3, len(before) // 5) :].min() + 3 * sigma and end > float(np.median(before[-3:])):
        return f"{score.name} went from {abs(float(np.median(before[-3:]))):.4g} to {abs(end):.4g} meanwhile"
    return ""


def _cosine(n: int, period: float) -> list[float]:
    return [0.5e-3 * (1 + float(np.cos(np.pi * i / period))) for i in range(n)]


CASES = {
    "finding": {"lr": _cosine(160, 100)},
    "clear": {"lr": _cosine(100, 100)},
    "unknown": {"train/loss": [1.0, 0.9, 0.8]},
}
