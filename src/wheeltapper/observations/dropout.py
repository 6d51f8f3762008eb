"""The share of activations that is dropped.

## Definition
Dropout, 0 to 1.

## Derivation
Recipes use 0 to 0.5. At 0.8 a fifth of the network is left in every step.

## Healthy band
Below 0.6.

## When it misleads
Very wide layers.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (0.6, 0.75)
BAND = (None, 0.6)


def observe(knobs: Knobs) -> Reading | Unknown:
    value = number(knobs.value("augment.dropout"))
    if value is None or not 0 <= value <= 1:
        return Unknown("dropout is not set", ("dropout",))
    return Reading(value, f"dropout is {value:g}", places=(knobs.place("augment.dropout"),))
