"""A NaN in a running mean clears with the next mean.

## What happens
Many loops print a mean since the start of the epoch. One bad batch makes that mean NaN until the epoch ends; the
model may be untouched, because the scaler or the loop skipped the batch.

## How it shows
NaN for the rest of an epoch (or for whole epochs, in a log of epochs), then ordinary values again at the old level.

## What else looks like this
NaN in the weights: it never clears.

## When this is wrong
The values after the NaN are worse than before.

## Fix
Nothing to mend.

## Trial
None needed.

## References
- dmlc/gluon-cv training logs; the AverageMeter of pytorch/examples, imagenet/main.py.
- A running mean keeps one NaN until it is reset.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series

ID = "normal-poisoned-average"
AREA = "logging"
NORMAL = True


def expect(case: Case) -> str:
    train: Series | None = case.get("train_loss")
    if train is None:
        return ""
    cleared = [f for f in case.found("not-finite", severity="watch") if f.series == train.name and f.end is not None]
    if not cleared:
        return ""
    first = cleared[0].onset or 0.0
    before, after = train.values[(train.at < first) & train.finite], train.values[(train.at > first) & train.finite]
    if len(after) < 3 or (len(before) and np.median(after[-10:]) > 1.1 * np.median(before[-10:])):
        return ""
    rows = int(cleared[0].numbers.get("rows", 0))
    return (
        f"{rows} rows of {train.name} are not finite, yet later rows are, at {float(np.median(after[-10:])):.4g}: "
        "one bad batch poisons a running mean; weights that were NaN could not come back"
    )
