"""The weight decay against what is usual.

## Definition
log10 of the weight decay.

## Derivation
Recipes use 1e-5 to 0.3 with Adam and 1e-5 to 1e-3 with SGD; 1 and above pulls weights to zero faster than most tasks push.

## Healthy band
Below −0.2 (0.6).

## When it misleads
Rates that are very small make a large decay harmless.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (-0.2, 0.5)
BAND = (None, -0.2)


def observe(knobs: Knobs) -> Reading | Unknown:
    decay = number(knobs.value("optimizer.weight_decay"))
    if decay is None or decay < 0:
        return Unknown("the weight decay is not known", ("weight decay",))
    return Reading(
        math.log10(max(decay, 1e-8)), f"the weight decay is {decay:g}", places=(knobs.place("optimizer.weight_decay"),)
    )
