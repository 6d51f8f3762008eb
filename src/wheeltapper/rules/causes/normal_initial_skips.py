"""Skipped updates in the first steps are the search for a loss scale.

## What happens
A dynamic scaler starts high (65536; Megatron 2^32) and halves on every overflow until the first step passes.

## How it shows
The loss scale falls on the first rows, then holds or rises; the log reports overflows only there.

## What else looks like this
A collapse in the middle of the run.

## When this is wrong
The scale goes on falling after the first steps, or ends below 1.

## Fix
Nothing to mend.

## Trial
None needed.

## References
- PyTorch, torch/amp/grad_scaler.py.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series

ID = "normal-initial-skips"
AREA = "precision"
NORMAL = True
START = 0.1  # of the rows, or twenty of them


def expect(case: Case) -> str:
    scale: Series | None = case.get("loss_scale")
    if scale is None or case.found("scale-collapse"):
        return ""
    x = scale.values[scale.finite]
    head = max(2, min(20, int(START * len(x))))
    if len(x) <= head or np.any(x <= 0):
        return ""
    level = float(x[:head].min())
    halvings = float(np.log2(x[0] / level))
    if halvings < 1 or float(x[head:].min()) < level / 2 or level < 1:
        return ""
    return (
        f"{halvings:.0f} halvings of the loss scale in the first {head} rows are expected: "
        f"the scaler searches from {x[0]:g} down to {level:g}"
    )
