"""The validation loss stopped while the training loss went on falling, far below it.

## What it sees
A validation loss that made no progress over most of the record while the training loss fell to a fraction.

## Why it matters
What is still being learned helps only the training set. A gap as such is no fault: dropout, augmentation
and a harder validation set make one from the first evaluation on.

## How it decides
Over the last 60 % of the record the validation loss gained less than 5 % of what it had gained before and less than a fifth of what was left, the
training loss fell by half or more in that time, and the ratio of the two grew at least threefold since the
first evaluation (so that a gap of units or of difficulty, present from the start, does not count). Ill
when the main validation metric is poor as well (a share under 30 %); a watch when a metric is decent and
holds, because then the model may still be what was wanted.

## When it is wrong
Training and validation losses in different units (the ratio is then constant), mixup and label smoothing.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- huggingface/transformers pull request 34191 and issues 34263 and 35207 (loss too large by a constant
  factor).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import block_medians

ID = "train-val-gap"
LIVE = False
LATE, PROGRESS, FELL, GREW, POOR = 0.6, 0.05, 0.5, 3.0, 0.3


def look(train_loss: Series, val_loss: Series, main_metric: Series | None = None) -> Answer:
    y = val_loss.values[val_loss.finite]
    at_val = val_loss.at[val_loss.finite]
    clock = val_loss.clock
    track = train_loss.on(clock)
    if track is None or len(y) < 10 or np.any(y <= 0) or train_loss.quantity != val_loss.quantity:
        return Unknown("too few evaluations, or no common clock, to compare training with validation", ("val/loss",))
    good = train_loss.finite & (train_loss.values > 0) & np.isfinite(track)
    if good.sum() < 10:
        return Unknown("fewer than ten positive training losses", ("train/loss",))
    x = np.interp(at_val, track[good], _smooth(train_loss.values[good]))
    cut = int(len(y) * (1 - LATE))
    head, tail = max(1, len(y) // 20), max(2, len(y) // 10)
    level = _smooth(y)
    start, middle, end = float(np.median(y[:head])), float(np.min(level[: cut + 1])), float(np.median(y[-tail:]))
    gained, since = start - middle, middle - end
    if gained <= 0:
        return Clear("the validation loss never fell, which other signs judge")
    ratio0, ratio1 = float(y[:head].mean() / x[:head].mean()), float(y[-tail:].mean() / x[-tail:].mean())
    fell = float(x[-tail:].mean() / x[cut])
    # Where nearly all was gained at once, what is won later is small beside it and may still be a fifth of what is left.
    if since > min(PROGRESS * gained, 0.2 * middle) or fell > 1 - FELL or ratio1 < GREW * max(ratio0, 0.2):
        return Clear(f"validation over training loss went from {ratio0:.3g} to {ratio1:.3g}")
    best = int(np.argmin(level[: cut + 1]))
    index = int(np.flatnonzero(val_loss.finite)[best])
    metric = _share(main_metric)
    text = (
        f"{val_loss.name} made no progress since {where(val_loss, index)} ({middle:.4g}, now {end:.4g}), while "
        f"{train_loss.name} fell to {x[-tail:].mean():.4g}: {ratio1:.2g} times below it"
    )
    ill = metric is not None and metric < POOR
    if metric is not None and main_metric is not None:
        text += f"; {main_metric.name} reaches {metric:.3g}" + ("" if ill else " and holds")
    return seen(ID, val_loss, text, severity="ill" if ill else "watch", grade="is-p", onset=index, p=1e-3, ratio=ratio1)


def _smooth(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    middles, levels = block_medians(values, 40)
    return np.interp(np.arange(len(values)), middles, levels)


def _share(metric: Series | None) -> float | None:
    if metric is None or metric.unit not in ("%", "fraction") or metric.better != "up":
        return None
    return float(np.nanmax(metric.values)) / (100.0 if metric.unit == "%" else 1.0)


_n = 60
_train = [10.0 * 0.93**i + 0.1 for i in range(_n)]
CASES = {
    "finding": {
        "train/loss": _train,
        "val/loss": [3.0 + 9.0 * 0.8**i + 0.01 * (i % 3) for i in range(_n)],
        "val/map": [0.04 * (1 - 0.95**i) for i in range(_n)],
    },
    "clear": {"train/loss": _train, "val/loss": [v * 1.3 for v in _train]},
    "near miss": {
        "train/loss": [v + 2 for v in _train],
        "val/loss": [3.0 + 9.0 * 0.8**i for i in range(_n)],
        "expect": "clear",
    },
    "unknown": {"train/loss": [1.0, 0.9, 0.8]},
}
