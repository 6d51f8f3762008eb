"""The loss is maximised.

## What happens
A sign error: each step makes the loss worse, at any learning rate.

## How it shows
The loss rises from the very first step and never falls, smoothly.

## What else looks like this
A learning rate that is too high first falls or oscillates; a curriculum rises by design.

## When this is wrong
The loss fell at any time.

## Fix
Mend the sign; or pass maximize=False.

## Trial
One small step along the gradient: the batch's loss must fall.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- A small step along the gradient must lower the loss of its own batch.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "wrong-loss-sign"
AREA = "loop"
EXPLAINS = ("diverged", "slow-rise")
PRIOR = -4.0
TRIAL = "take one small step on one batch: its loss must fall"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    train: Series | None = case.get("train_loss")
    if train is None or int(train.finite.sum()) < 10:
        return Excluded("no training loss to see it in")
    x = train.values[train.finite]
    levels = np.array([float(np.median(part)) for part in np.array_split(x, 10)])
    if np.any(np.diff(levels) < 0):
        return Excluded("the loss fell at some time")
    return [
        Evidence(
            5.0,
            f"the loss rises from the first rows on, without a fall ({levels[0]:.3g} to {levels[-1]:.3g})",
            "shape",
            (train.place(0),),
        )
    ]


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (Remedy("Mend the sign of the loss.", (), "safe", "one small step lowers the loss of its own batch"),)
