"""The training loss stopped falling long before the run was to end.

## What it sees
A training loss that is flat, within its noise, over most of the record, while the learning rate was still
high and much of the planned budget lay ahead.

## Why it matters
Everything after the knee bought nothing. Either the data is memorised, or the model is stuck; both are
found out by looking, not by waiting.

## How it decides
The knee is the first point after which no block median is lower than its level by more than the noise of
a block. Ill when the flat part is at least 60 % of the record and 1000 rows, the learning rate at the end
is at least half its peak (a decayed rate explains a flat tail), at least a third of the planned steps were
still to come, and the record spans more than three epochs: by then every example was seen several times.
Otherwise a flat tail is how training ends, and nothing is said.

## When it is wrong
Objectives whose noise hides progress (diffusion, NORM-02; not judged here) and constant-rate phases that
wait for a cool-down (NORM-10): a short fork with a tenth of the rate decides.

## References
KNOWLEDGE OUT-07, NORM-02, NORM-10, OUT-20.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.run.model import Series
from wheeltapper.signals.curves import Task
from wheeltapper.signals.progress import Progress
from wheeltapper.signals.statistics import block_medians, noise_of
from wheeltapper.signs import seen, where

ID = "plateau"
LIVE = False
FLAT, ROWS, RATE, AHEAD, EPOCHS = 0.6, 1000, 0.5, 1 / 3, 3.0


def look(train_loss: Series, task: Task, progress: Progress, lr: Series | None = None) -> Answer:
    if task.diffusion:
        return Unknown("a diffusion loss is nearly flat by nature", ("per-noise-level losses on a fixed probe",))
    x = train_loss.values[train_loss.finite]
    if len(x) < 40:
        return Unknown("fewer than 40 training losses", ("a loss logged more often",))
    knee = knee_of(x)
    flat = 1 - knee / len(x)
    epochs = train_loss.on("epoch")
    span = float(np.nanmax(epochs) - np.nanmin(epochs)) if epochs is not None and np.isfinite(epochs).any() else None
    decayed = _rate_left(lr)
    if flat < FLAT or len(x) - knee < ROWS:
        return Clear(f"the loss still fell until {1 - flat:.0%} of the record")
    ahead = None if progress.share is None else 1 - progress.share
    if decayed is None or ahead is None or span is None:
        return Unknown("flat, but the learning rate, the planned length or the epochs are not logged", ("lr", "total steps"))
    if decayed < RATE or ahead < AHEAD or span < EPOCHS:
        return Clear("flat at the end, as a finished or decayed run is")
    index = int(np.flatnonzero(train_loss.finite)[knee])
    level = float(np.median(x[knee:]))
    text = (
        f"{train_loss.name} is flat at {level:.4g} since {where(train_loss, index)}, {flat:.0%} of the record, "
        f"with the learning rate at {decayed:.0%} of its peak and {ahead:.0%} of the planned run ahead"
    )
    return seen(ID, train_loss, text, severity="ill", grade="is-p", onset=index, p=1e-3, flat=flat, level=level, epochs=span)


def knee_of(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    """Index from which on the level no longer falls by more than the noise of a block median."""
    middles, levels = block_medians(x, 40)
    noise = noise_of(x)
    per_block = max(1.0, len(x) / len(levels) * (1 - noise.rho) / (1 + noise.rho))
    slack = max(3.0 * noise.sigma / math.sqrt(per_block), 1e-9)
    # A block median that later blocks stay under by more than the slack is still on the way down.
    rest = np.array([np.median(levels[i:]) for i in range(len(levels))])
    falling = np.flatnonzero(levels - rest > slack)
    return int(middles[falling[-1]]) + 1 if len(falling) else 0


def _rate_left(lr: Series | None) -> float | None:
    if lr is None:
        return None
    values = lr.values[lr.finite]
    return float(values[-1] / values.max()) if len(values) and values.max() > 0 else None


CASES = {
    "finding": {
        "train/loss": [2.0 * 0.98**i + 0.1 + 0.01 * ((i * 7) % 5) for i in range(2500)],
        "lr": [1e-4 - 1e-8 * i for i in range(2500)],
        "steps_per_epoch": 100,
        "facts": {"total_steps": 20000},
    },
    "clear": {
        "train/loss": [2.0 - 0.0005 * i + 0.01 * ((i * 7) % 5) for i in range(2500)],
        "lr": [1e-4] * 2500,
        "steps_per_epoch": 100,
        "facts": {"total_steps": 20000},
    },
    "unknown": {"train/loss": [2.0, 1.5, 1.2, 1.0, 0.9]},
}
