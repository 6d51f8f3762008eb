"""A step in the curves at a cut of the learning rate is expected.

## What happens
When the rate is cut, the noise that it made disappears at once: loss and score jump to a better level.

## How it shows
A sudden improvement within a few rows of a cut.

## What else looks like this
A change of data or of the loss at the same time.

## When this is wrong
The improvement comes before the cut.

## Fix
Nothing to mend.

## Trial
None needed.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- timm, train.py and timm/scheduler (huggingface/pytorch-image-models).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import badness, noise_of

ID = "normal-lr-staircase"
AREA = "schedule"
NORMAL = True
ROWS, Z = 5, 3.0  # rows on each side; times the noise of their medians


def expect(case: Case) -> str:
    shape, lr = case.get("lr_shape"), case.get("lr")
    if shape is None or lr is None or not shape.cuts:
        return ""
    curves: list[Series | None] = [case.get("main_metric"), case.get("train_loss")]
    for series in curves:
        at = None if series is None else series.on(lr.clock)
        if series is None or at is None:
            continue
        x, spots = badness(series.values[series.finite], series.better), at[series.finite]
        for cut in shape.cuts:
            before, after = x[spots < cut.at][-ROWS:], x[spots >= cut.at][:ROWS]
            if len(before) < 3 or len(after) < 3:
                continue
            gain = float(np.median(before) - np.median(after))
            if gain > Z * max(noise_of(x[spots < cut.at]).sigma, 1e-12):
                return f"the step of {series.name} at {lr.clock} {cut.at:,.10g} is expected: the learning rate is cut {1 / cut.ratio:.3g}-fold there"
    return ""
