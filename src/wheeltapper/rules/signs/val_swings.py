"""A held-out score swings between what was learned and where it began.

## What it sees
Evaluations that lose nearly all that was gained for several in a row, come back, and lose it again, in the second half of
the run.

## Why it matters
The score of the last checkpoint is a matter of luck, and so is any comparison of two runs by it. What training learned is
there (the good evaluations show it), but the evaluated network does not hold it: statistics of normalisation layers that do
not fit the weights, too high a rate at the end, an evaluation that is not always of the same weights.

## How it decides
Of the evaluations in the second half at least a tenth has lost three quarters of the gain or more, and at least a tenth
has kept three quarters of it. The score went from the one to the other five times or more. Neighbours agree (a correlation of
0.3 at lag 1, and four standard errors, 1/sqrt(n)): a small evaluation set scatters, too, but each evaluation
by itself. The gain was worth something (a tenth of the scale of a share, a fifth of another score). It is ill where the
training loss still falls through the second half, else a watch. Not asked of returns, of scores of a part, of adversarial training,
and where the learning rate is cyclic or the difficulty changes.

## When it is wrong
Evaluations of several models or data sets in turn, under one name.

## References
- LOG.md, 2026-11-16: of about 900 public records and 397 of the lab one swings so, twelve times; no other more than four.
- Ioffe 2017, Batch Renormalization (arXiv:1702.03275): statistics of training and of evaluation that differ.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, share
from wheeltapper.run.model import Series
from wheeltapper.simulate.lr_shape import LrShape
from wheeltapper.study.curves import SUPPORTING, Task
from wheeltapper.study.statistics import badness, fall_from_best

ID = "val-swings"
LIVE = False
EVALS = 32  # sixteen in the second half: five swings of two and more evaluations need them
PART, FAR, NEAR, SWINGS = 0.1, 0.75, 0.25, 5
ALIKE, ERRORS = 0.3, 4.0
WORTH_SHARE, WORTH = 0.1, 0.2
FALLS = 0.05  # of the training loss, from the third quarter to the last


def look(
    val_metrics: tuple[Series, ...],
    task: Task,
    train_loss: Series | None = None,
    lr_shape: LrShape | None = None,
    shifting: str = "",
) -> Answer:
    scores = [
        s
        for s in val_metrics
        if int(s.finite.sum()) >= EVALS and not s.part and s.quantity not in {"return", "success", *SUPPORTING}
    ]
    if not scores or task.adversarial:
        return Unknown(f"no score of the whole held-out set with {EVALS} evaluations", ("more evaluations",))
    if shifting or (lr_shape is not None and lr_shape.kind in ("cyclic", "restarts")):
        return Unknown(shifting or "the learning rate is cyclic, and the score may follow it")
    for series in scores:
        index = np.flatnonzero(series.finite)
        x = badness(series.values[index], series.better)
        fall = fall_from_best(x)
        half = len(x) // 2
        late = x[half:]
        if fall is None or fall.gain < _worth(series, fall.best) or series.clock == "row":
            continue
        far, near = late > fall.best + FAR * fall.gain, late < fall.best + NEAR * fall.gain
        side = np.where(far, 1, np.where(near, -1, 0))
        side = side[side != 0]
        swings = int(np.sum((side[1:] == 1) & (side[:-1] == -1)))
        alike = _alike(late)
        if (
            far.mean() < PART
            or near.mean() < PART
            or swings < SWINGS
            or alike < max(ALIKE, ERRORS / math.sqrt(len(late)))
        ):
            continue
        sign = -1.0 if series.better == "up" else 1.0
        reached = int(np.argmax(x < fall.best + NEAR * fall.gain))
        lost = reached + int(np.argmax(x[reached:] > fall.best + FAR * fall.gain))
        falls = train_loss is not None and _falls(train_loss)
        text = (
            f"{series.name} swings: in the second half {share(float(near.mean()))} of the evaluations are near the best "
            f"({sign * fall.best:.4g}) and {share(float(far.mean()))} back where it began ({sign * fall.first:.4g}) or "
            f"nearly so, {swings} times to and fro"
            + (f", while {train_loss.name} falls" if falls and train_loss else "")
        )
        return seen(
            ID, series, text, severity="ill" if falls else "watch", grade="is-p", onset=int(index[lost]),
            p=math.erfc(ERRORS / math.sqrt(2)), swings=swings, far=float(far.mean()), alike=alike,
        )  # fmt: skip
    return Clear("no score swings between its best and its first level")


def _worth(series: Series, level: float) -> float:
    if series.unit in ("%", "fraction"):
        return WORTH_SHARE * (100.0 if series.unit == "%" else 1.0)
    return WORTH * abs(level)


def _alike(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """The correlation of neighbours."""
    centred = x - x.mean()
    power = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / power if power > 0 else 0.0


def _falls(train: Series) -> bool:
    y = train.values[train.finite]
    quarter = len(y) // 4
    if quarter < 2:
        return False
    third, last = float(np.median(y[2 * quarter : 3 * quarter])), float(np.median(y[-quarter:]))
    return last < third - FALLS * abs(third)


_t = np.arange(120)
_noise = np.random.default_rng(3).standard_normal(120)
_down = (1.4 * 0.985**_t + 0.01 * _noise).tolist()
_up = 0.3 + 0.4 * (1 - 0.93**_t)
_swing = _t % 12 >= 7
CASES = {
    "finding": {"train/loss": _down, "val/accuracy": np.where((_t > 40) & _swing, 0.25 + 0.01 * _noise, _up).tolist(), "expect": "ill"},
    "flat training": {
        "train/loss": [1.0] * 120,
        "val/accuracy": np.where((_t > 40) & _swing, 0.25 + 0.01 * _noise, _up).tolist(),
        "expect": "watch",
    },
    "clear": {"train/loss": _down, "val/accuracy": (_up + 0.02 * _noise).tolist()},
    "small set": {"train/loss": _down, "val/accuracy": (_up + 0.2 * _noise).tolist(), "expect": "clear"},
    "one fall": {"train/loss": _down, "val/accuracy": np.where(_t > 90, 0.25, _up).tolist(), "expect": "clear"},
    "unknown": {"train/loss": _down},
}  # fmt: skip
