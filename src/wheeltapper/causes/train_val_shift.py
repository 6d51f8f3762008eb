"""Training and validation come from different populations.

## What happens
Other sources, another time, another preparation: what is learned does not carry over, however long it is
trained.

## How it shows
The gap is there at the first evaluation, before anything could be memorised, and it stays.

## What else looks like this
Overfitting (the gap grows from nothing), another unit of one of the losses (a constant ratio), mixup and
dropout (validation better), a broken evaluation (validation learns nothing at all).

## When this is wrong
The first evaluations agree with training: then the gap was learned, it is overfitting.

## Fix
Compare the two sets: sources, sizes, means, frequency of the classes; draw the splits again at random.

## Trial
Train a small classifier to tell training from validation items: above chance decides.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "train-val-shift"
AREA = "data"
EXPLAINS = ("train-val-gap", "val-left-behind")
PRIOR = -3.0
TRIAL = "train a small classifier to tell training from validation items: above chance decides"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    train: Series | None = case.get("train_loss")
    val: Series | None = case.get("val_loss")
    if train is None or val is None:
        return []
    track = train.on(val.clock)
    if case.found("units-differ"):
        return Excluded("the two losses are in different units")
    if track is None:
        return []
    good, mine = train.finite & np.isfinite(track), val.finite
    if good.sum() < 10 or mine.sum() < 5:
        return []
    x = np.interp(val.at[mine], track[good], train.values[good])
    y = val.values[mine]
    k = max(1, len(y) // 20)
    first, last = float(np.median(y[:k] / x[:k])), float(np.median(y[-k:] / x[-k:]))
    # A tenth at the first evaluation is what dropout, augmentation and a mean over the epoch make by themselves.
    if first < 1.1:
        return Excluded(f"validation agrees with training at the first evaluation (ratio {first:.2f})")
    if first > 1.5:
        out = [Evidence(4.0, f"validation is {first:.2g} times training at the first evaluation already", "first")]
        if last > 3 * first:
            out.append(
                Evidence(-2.0, f"the gap grew to {last:.2g} times, which a difference of sets does not", "grows")
            )
        return out
    return [Evidence(-1.0, f"the gap is small at the first evaluation (ratio {first:.2f})", "first")]


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Draw the splits again from one shuffled pool, or judge on the set that counts.", (), "advice",
               "the first evaluation agrees with training"),
    )  # fmt: skip
