"""How far the weights can go.

## Definition
log10 of the sum of the rates over all updates (Adam and kin).

## Derivation
A step of Adam moves a weight by at most about the rate, so the sum bounds its way. Weights begin at 0.02 to 0.1: a sum far
below means that they stay where they began.

## Healthy band
Above −0.5.

## When it misleads
Fine-tuning, which needs little; very long runs.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.length import Length, Rates

ABOUT = "learning"
SETTING = True
LIVE = False
EDGES = (-2.0, -1.0, -0.5)
BAND = (-0.5, None)


def observe(rates: Rates, length: Length, scale_free: bool, from_scratch: bool) -> Reading | Unknown:
    if not scale_free or not length.done or not from_scratch:
        return Unknown(
            "only for training from scratch with an optimizer whose step is the rate", ("the optimizer", "steps")
        )
    total = rates.mean() * length.done
    text = f"the rates of {length.done:g} updates add up to {total:.3g}"
    return Reading(math.log10(max(total, 1e-12)), text)
