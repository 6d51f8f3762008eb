"""The weight of the KL term.

## Definition
log10 of the weight (beta) of the KL divergence.

## Derivation
At a weight far above 1 the cheapest code is none: the posterior becomes the prior and nothing of the input is kept.

## Healthy band
Below 0.8 (six).

## When it misleads
Sums over pixels against means over them change the scale of the weight.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (0.8, 1.5)
BAND = (None, 0.8)


def observe(knobs: Knobs) -> Reading | Unknown:
    value = number(knobs.value("loss.kl_weight"))
    if value is None or value <= 0:
        return Unknown("no weight of a KL term is set", ("KL weight",))
    return Reading(math.log10(value), f"the KL term has a weight of {value:g}", places=(knobs.place("loss.kl_weight"),))
