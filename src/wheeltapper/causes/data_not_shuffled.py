"""The training data comes in the same order in every epoch.

## What happens
Shuffling is off, or a distributed sampler is never told the epoch. Sorted data feeds one class after the
other; a fixed order feeds the same batches again and again.

## How it shows
The loss repeats its pattern from epoch to epoch, batch by batch; with sorted data the validation score
swings with the last class seen.

## What else looks like this
The sawtooth of Adam over epochs (a common mean shape, but no repetition batch by batch), a metric that is
reset at the start of an epoch, evaluation or checkpoint intervals.

## When this is wrong
The rows of two epochs, mean shape removed, are uncorrelated: then the order changes.

## Fix
Shuffle; call set_epoch on a distributed sampler.

## Trial
Fork with another shuffle seed: the pattern within the epoch must vanish.

## References
- PyTorch, torch/utils/data/distributed.py.
- The Epochal Sawtooth Effect (arXiv:2410.10056).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.signals.statistics import running_median

ID = "data-not-shuffled"
AREA = "data"
EXPLAINS = ("epoch-sawtooth", "periodic", "oscillating", "at-chance")
PRIOR = -4.0
TRIAL = "fork with another shuffle seed: the pattern within the epoch must vanish"


ROWS, SAME, OTHER = 20, 0.8, 0.3  # of 20 rows or more, independent batches correlate by 0.22 or less (1/sqrt n)


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    out = proofs(case, "set-epoch-missing", bits=6.0)
    train: Series | None = case.get("train_loss")
    repeats = order_correlation(train) if train is not None else None
    if repeats is not None and repeats < OTHER:
        return Excluded(f"the batches of two epochs are unrelated (correlation {repeats:.2f}): the order changes")
    if repeats is not None and repeats > SAME:
        out.append(Evidence(5.0, f"the loss repeats from epoch to epoch, row by row ({repeats:.2f})", "repeats"))
    shuffle = case.knob("data.shuffle")
    if shuffle is False and case.knobs is not None:
        out.append(Evidence(3.0, "shuffling is off", "setting", (case.knobs.place("data.shuffle"),)))
    elif shuffle is True and not out:
        return Excluded("shuffling is on")
    return out


def order_correlation(loss: Series) -> float | None:
    """How alike the rows of consecutive epochs are once their smooth shape is taken away; None if the log
    does not show the same batch positions in two epochs."""
    epochs = loss.clocks.get("epoch")
    if epochs is None or loss.clock != "step" or loss.window in ("running", "epoch"):
        return None
    good = loss.finite & np.isfinite(epochs)
    x, spots, steps = loss.values[good], epochs[good], loss.at[good]
    if len(x) < 2 * ROWS or spots[-1] <= spots[0]:
        return None
    per_epoch = (steps[-1] - steps[0]) / (spots[-1] - spots[0])
    number = np.floor(spots + 0.25 / per_epoch)
    found = []
    for k in np.unique(number)[:50]:
        mine, next_ = np.flatnonzero(number == k), np.flatnonzero(number == k + 1)
        if len(mine) < ROWS or len(mine) != len(next_):
            continue
        # The same batch of both epochs: positions agree to a quarter of a step.
        if np.max(np.abs(spots[next_] - spots[mine] - 1)) * per_epoch > 0.25:
            continue
        a, b = (x[i] - running_median(x[i], 5) for i in (mine, next_))
        if a.std() > 0 and b.std() > 0:
            found.append(float(np.corrcoef(a, b)[0, 1]))
    return float(np.median(found)) if len(found) >= 2 else None


def remedies(case: Case) -> tuple[Remedy, ...]:
    if case.knob("data.shuffle") is False:
        return (
            Remedy(
                "Shuffle the training data.",
                (Edit("data.shuffle", False, True),),
                "safe",
                "rows of consecutive epochs are uncorrelated",
            ),
        )
    return (Remedy("Call set_epoch on the sampler in every epoch.", (), "safe", "rows of two epochs are uncorrelated"),)
