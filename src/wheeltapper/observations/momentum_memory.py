"""The memory of the momentum, in updates.

## Definition
1 / (1 − momentum) of SGD, or of Adam's first beta; log10.

## Derivation
The step is the rate times this sum of gradients: 0.9 gives ten, 0.995 two hundred. Beyond a hundred the weights overshoot and
swing.

## Healthy band
Below 1.7 (a momentum of 0.98).

## When it misleads
Rates that were lowered in proportion.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (1.7, 2.2)
BAND = (None, 1.7)


def observe(knobs: Knobs) -> Reading | Unknown:
    value = number(knobs.value("optimizer.momentum"))
    betas = knobs.value("optimizer.betas")
    if value is None and isinstance(betas, list) and betas:
        value = number(betas[0])
    if value is None or not 0 <= value < 1:
        return Unknown("the momentum is not set", ("momentum",))
    return Reading(
        -math.log10(1.0 - value),
        f"the momentum is {value:g}: a memory of {1 / (1 - value):.3g} updates",
        places=(knobs.place("optimizer.momentum"),),
    )
