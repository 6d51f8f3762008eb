"""A detection score near zero for long is expected.

## What happens
mAP counts a box only when it is well placed and ranked: a young detector scores zero though its losses fall.

## How it shows
mAP, recall or IoU stays under 1 % for the first evaluations, then rises.

## What else looks like this
An evaluation that is broken: it stays at zero to the end.

## When this is wrong
The score never leaves zero.

## Fix
Nothing to mend.

## Trial
None needed: wait for a tenth of the plan, and look at the losses meanwhile.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._look import as_share

ID = "normal-late-map"
AREA = "evaluation"
NORMAL = True
NEAR_ZERO, RISEN, FIRST = 0.01, 0.05, 3  # shares; evaluations at the start


def expect(case: Case) -> str:
    for series in case.get("val_metrics") or ():
        if series.quantity not in ("map", "map50", "iou", "recall") or series.part:
            continue
        x = series.values[series.finite] / as_share(series)
        if len(x) < 2 * FIRST:
            continue
        left = np.flatnonzero(x > NEAR_ZERO)
        if len(left) and left[0] >= FIRST and float(np.median(x[-3:])) > RISEN:
            return (
                f"{series.name} under {NEAR_ZERO:.0%} for the first {left[0]} evaluations is expected of a detector: "
                f"it rose to {float(x[-1]):.3g} afterwards"
            )
    return ""
