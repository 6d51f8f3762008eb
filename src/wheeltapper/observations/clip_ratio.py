"""The clipping threshold against the norm of the gradient.

## Definition
log10 of the threshold over the median logged norm.

## Derivation
Below the median most steps are cut to the threshold. With SGD that cuts the rate by the same factor; Adam does not mind a
constant factor.

## Healthy band
Above −1.3.

## When it misleads
Norms that are logged after clipping.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.run.model import Series
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
EDGES = (-3.0, -1.3)
BAND = (-1.3, None)


def observe(knobs: Knobs, grad_norm: Series) -> Reading | Unknown:
    limit = number(knobs.value("clip.norm"))
    norms = grad_norm.values[grad_norm.finite]
    middle = float(np.median(norms)) if len(norms) else 0.0
    if limit is None or limit <= 0 or middle <= 0:
        return Unknown("no clipping threshold, or no norm", ("clip norm", "grad_norm before clipping"))
    text = f"gradients are clipped at {limit:g}; their norm is {middle:.3g}"
    return Reading(
        math.log10(limit / middle),
        text,
        series=grad_norm.name,
        clock=grad_norm.clock,
        places=(knobs.place("clip.norm"),),
    )
