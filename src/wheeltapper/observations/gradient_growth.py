"""How the norm of the gradient changed.

## Definition
log10 of the median norm of the last fifth over that of the first fifth.

## Derivation
Norms shrink or hold as a run settles. Growth by tens comes with a rate that is too high, or with gradients that pile up.

## Healthy band
Below 0.7.

## When it misleads
Losses whose weights rise by plan.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Series

ABOUT = "learning"
EDGES = (-1.5, -0.3, 0.3, 0.7, 1.5)
BAND = (-1.5, 0.7)


def observe(grad_norm: Series) -> Reading | Unknown:
    x = grad_norm.values[grad_norm.finite & (grad_norm.values > 0)]
    if len(x) < 10:
        return Unknown("too few gradient norms", ("grad_norm",))
    k = max(2, len(x) // 5)
    early, late = float(np.median(x[:k])), float(np.median(x[-k:]))
    text = f"the gradient norm went from {early:.3g} to {late:.3g}"
    return Reading(math.log10(late / early), text, series=grad_norm.name, clock=grad_norm.clock)
