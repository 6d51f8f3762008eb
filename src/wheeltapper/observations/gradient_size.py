"""The norm of the gradient against the loss.

## Definition
log10 of the median gradient norm over the median training loss.

## Derivation
The norm says how much the loss changes with the weights. A hundredth of the loss and less means that the loss hardly depends
on them: saturated, squeezed or cut off.

## Healthy band
−1.7 to 2.

## When it misleads
Norms after clipping; summed losses.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Series
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (-2.5, -1.7, 2.0)
BAND = (-1.7, 2.0)


def observe(grad_norm: Series, train_curve: Curve) -> Reading | Unknown:
    x = grad_norm.values[grad_norm.finite & (grad_norm.values > 0)]
    loss = float(np.median(np.abs(train_curve.error)))
    if len(x) < 5 or loss <= 0:
        return Unknown("too few gradient norms", ("grad_norm",))
    text = f"the gradient norm is {np.median(x):.3g} beside a loss of {loss:.3g}"
    return Reading(math.log10(float(np.median(x)) / loss), text, series=grad_norm.name, clock=grad_norm.clock)
