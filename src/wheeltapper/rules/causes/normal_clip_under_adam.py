"""Clipping almost every step does not slow an adaptive optimizer.

## What happens
Adam and its kin divide by the size of the gradient, so a clip that acts on every step scales gradient and divisor
alike: the steps keep their length.

## How it shows
The gradient norm exceeds the threshold on most steps, and training goes well.

## What else looks like this
The same with SGD, where the threshold does set the step.

## When this is wrong
The optimizer is not adaptive.

## Fix
Nothing to mend.

## Trial
None needed: thresholds of 1e-2, 1e-3 and 1e-4 gave the same result with Adam.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- Executed with torch 2.13: thresholds of 1e-2, 1e-3 and 1e-4 gave Adam the same result, SGD three
  different ones.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import adaptive, number
from wheeltapper.run.model import Series

ID = "normal-clip-under-adam"
AREA = "clipping"
NORMAL = True


def expect(case: Case) -> str:
    norm: Series | None = case.get("grad_norm")
    limit = number(case.knob("clip.norm"))
    if norm is None or limit is None or not adaptive(case):
        return ""
    scale: Series | None = case.get("loss_scale")
    if scale is not None and bool(np.any(scale.values > 1)):
        return ""  # the norm may be logged before it is unscaled (AMP-19)
    share = float(np.mean(norm.values[norm.finite] > limit))
    if share < 0.5:
        return ""
    name = case.knob("optimizer.name")
    return f"{share:.0%} of the steps are clipped at {limit:g}, which does not slow {name}: its steps do not depend on the size"
