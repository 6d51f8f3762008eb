"""The training loss stopped falling long before the run was to end.

## What it sees
A training loss that is flat, within its noise, over most of the record, while the learning rate was still
high and much of the planned budget lay ahead.

## Why it matters
Everything after the knee bought nothing. Either the data is memorised, or the model is stuck; both are
found out by looking, not by waiting.

## How it decides
Progress is measured in the loss and in its logarithm. The knee is where 95 % of the gain in both has been
made. Ill when the knee lies in the first 30 % of the record and nothing excuses it: the learning rate at
the end is at least half its peak (a decayed rate explains a flat tail) or is not logged, and there is no
score on held-out data that still improves, and no term of the loss that halved since (a floor, free bits or a constant,
hides it in the sum). Where more than half of the gain is gone again by the last quarter, the loss rose: no plateau. On the healthy records of the corpus with a rate that did not
decay the knee lies at 40 % or later (LOG.md, 2026-11-16). It is only suspected unless the record spans ten
epochs with a third of the planned run ahead: a model at the floor of its task looks the same.

## When it is wrong
Objectives whose noise hides progress (diffusion; not judged here) and constant-rate phases that
wait for a cool-down: a short fork with a tenth of the rate decides.

## References
- NVlabs/edm, README.md (Loss/loss beside FID).
- Tissue et al. 2024, Scaling Law with Learning Rate Annealing (arXiv:2408.11029).
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.curves import Task
from wheeltapper.study.learned import improves_late
from wheeltapper.study.progress import Progress
from wheeltapper.study.statistics import block_medians

ID = "plateau"
LIVE = False
ROWS, KNEE, GAIN, RATE, EPOCHS, AHEAD = 200, 0.30, 0.95, 0.5, 10.0, 1 / 3


def look(
    train_loss: Series,
    task: Task,
    progress: Progress,
    lr: Series | None = None,
    val_loss: Series | None = None,
    val_metrics: tuple[Series, ...] = (),
    loss_parts: tuple[Series, ...] = (),
) -> Answer:
    if task.diffusion:
        return Unknown("a diffusion loss is nearly flat by nature", ("per-noise-level losses on a fixed probe",))
    x = train_loss.values[train_loss.finite]
    if len(x) < ROWS or x.min() <= 0:
        return Unknown("fewer than 200 positive training losses", ("a loss logged more often",))
    knee = knee_of(x)
    if knee > KNEE:
        return Clear(f"the loss made its gain over {knee:.0%} of the record")
    _, levels = block_medians(x, 40)
    if float(np.median(levels[-10:])) > 0.5 * (float(levels[0]) + float(levels.min())):
        return Clear(f"it rose again since, from {levels.min():.4g} to {np.median(levels[-10:]):.4g}: more than half of the gain is gone")
    left = _rate_left(lr)
    if left is not None and left < RATE:
        return Clear("flat at the end, as a run with a decayed learning rate is")
    fell = [s.name for s in loss_parts if _fell_on(s, knee)]
    if fell:
        return Clear(f"{fell[0]} fell to less than half since, under a term that stands")
    late = [s.name for s in (val_loss, *val_metrics) if s is not None and improves_late(s)]
    if late:
        return Clear(f"{late[0]} still improves")
    epochs = train_loss.on("epoch")
    span = float(np.nanmax(epochs) - np.nanmin(epochs)) if epochs is not None and np.isfinite(epochs).any() else 0.0
    ahead = 0.0 if progress.share is None else 1 - progress.share
    sure = span >= EPOCHS and ahead >= AHEAD and left is not None
    index = int(np.flatnonzero(train_loss.finite)[min(int(knee * len(x)), len(x) - 1)])
    level = float(np.median(x[int(knee * len(x)) :]))
    text = f"{train_loss.name} is flat at {level:.4g} since {where(train_loss, index)}, {1 - knee:.0%} of the record"
    if left is not None:
        text += f", with the learning rate at {left:.0%} of its peak"
    if ahead >= AHEAD:
        text += f" and {ahead:.0%} of the planned run ahead"
    return seen(
        ID, train_loss, text, severity="ill", grade="is-p" if sure else "suspected", onset=index, p=0.05,
        flat=1 - knee, level=level, epochs=span,
    )  # fmt: skip


def _fell_on(part: Series, knee: float) -> bool:
    """A term that halved after the knee of the whole: a floor (free bits, a constant) hides it in the sum."""
    x = part.values[part.finite]
    start, k = int(knee * len(x)), max(3, len(x) // 20)
    return len(x) - start >= 4 * k and 0 < float(np.median(x[-k:])) < 0.5 * float(np.median(x[start : start + k]))


def knee_of(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """The share of the record after which 95 % of the gain is made, in the loss and in its logarithm."""
    _, levels = block_medians(x, 40)
    levels = np.minimum.accumulate(levels)
    first = float(np.median(x[: max(1, len(x) // 200)]))
    spots = []
    for lows, start in ((levels, first), (np.log(levels), float(np.log(first)))):
        aim = start - GAIN * (start - lows[-1])
        spots.append(int(np.argmax(lows <= aim)))
    return max(spots) / len(levels)


def _rate_left(lr: Series | None) -> float | None:
    if lr is None:
        return None
    values = lr.values[lr.finite]
    return float(values[-1] / values.max()) if len(values) and values.max() > 0 else None


CASES = {
    "finding": {
        "train/loss": [2.0 * 0.97**i + 0.1 + 0.01 * ((i * 7) % 5) for i in range(2500)],
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
    "a loss that rose again": {
        "train/loss": [*(2.0 * 0.97**i + 0.1 for i in range(800)), *(20.0 + 0.1 * (i % 5) for i in range(1700))],
        "expect": "clear",
    },
    "unknown": {"train/loss": [2.0, 1.5, 1.2, 1.0, 0.9]},
}
