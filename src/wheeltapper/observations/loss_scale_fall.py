"""How far the loss scale fell.

## Definition
log2 of the first loss scale over the last one.

## Derivation
The scaler halves its scale at every overflow and doubles it after thousands of clean steps. A fall by more than ten halvings
means that gradients overflow at every scale.

## Healthy band
Below 6.

## When it misleads
A first scale that was set far too high: six halvings at the start are its search.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Series

ABOUT = "learning"
EDGES = (2.5, 6.0, 10.0)
BAND = (None, 6.0)


def observe(loss_scale: Series) -> Reading | Unknown:
    x = loss_scale.values[loss_scale.finite]
    if len(x) < 3 or x.max() <= 0:
        return Unknown("the loss scale is not logged", ("loss scale",))
    low = max(float(np.min(x[len(x) // 2 :])), 1e-30)
    top = float(np.max(x[: max(2, len(x) // 10)]))
    text = f"the loss scale went from {top:.4g} to {low:.4g}"
    return Reading(math.log2(max(top, 1e-30) / low), text, series=loss_scale.name, clock=loss_scale.clock)
