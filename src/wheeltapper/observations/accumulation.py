"""How many backward passes make one update.

## Definition
log2 of the accumulation steps.

## Derivation
Accumulated losses must be divided by their number; where they are not, the gradient is that many times too large.

## Healthy band
Any: it only makes some causes possible.

## When it misleads
It speaks only together with other numbers.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (0.5, 2.5)
BAND = (None, None)


def observe(knobs: Knobs) -> Reading | Unknown:
    value = number(knobs.value("batch.accumulation"))
    if value is None or value < 1:
        return Unknown("the accumulation is not set", ("accumulation steps",))
    return Reading(
        math.log2(value), f"{value:g} backward passes make one update", places=(knobs.place("batch.accumulation"),)
    )
