"""How many processes trained together.

## Definition
log2 of the number of processes.

## Derivation
Rates that are scaled by it, seeds and samplers that ignore it, need more than one.

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
    value = number(knobs.value("world_size"))
    if value is None or value < 1:
        return Unknown("the number of processes is not set", ("world size",))
    return Reading(math.log2(value), f"{value:g} processes train together", places=(knobs.place("world_size"),))
