"""A loss scale of exactly 1 means that no scaler is at work.

## What happens
A scaler that is switched off (bf16, fp32) reports a scale of 1 on every row.

## How it shows
The logged scale is exactly 1 from the first row to the last.

## What else looks like this
A scale that fell to 1: it was higher before.

## When this is wrong
The run is in fp16.

## Fix
Nothing to mend.

## Trial
None needed.

## References
- PyTorch, torch/amp/grad_scaler.py.
- PyTorch Lightning, plugins/precision/amp.py (refuses a scaler with bf16).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series

ID = "normal-disabled-scaler"
AREA = "precision"
NORMAL = True


def expect(case: Case) -> str:
    scale: Series | None = case.get("loss_scale")
    if scale is None or len(scale) < 3 or case.knob("precision") == "fp16" or not np.all(scale.values == 1.0):
        return ""
    return f"a loss scale of exactly 1 on all {len(scale)} rows is expected where no scaler is at work (bf16, fp32)"
