"""The temperature of a contrastive or softmax loss.

## Definition
log10 of the temperature.

## Derivation
Similarities lie between −1 and 1: divided by a temperature of 5 they all look alike, and the loss is pinned near ln N. Below
0.01 only the nearest neighbour counts.

## Healthy band
−2 to 0.2 (0.01 to 1.6).

## When it misleads
Temperatures of distillation, which are 2 to 20 by design.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (-2.0, 0.2, 0.6)
BAND = (-2.0, 0.2)


def observe(knobs: Knobs) -> Reading | Unknown:
    value = number(knobs.value("loss.temperature"))
    if value is None or value <= 0:
        return Unknown("no temperature is set", ("temperature",))
    return Reading(math.log10(value), f"the temperature is {value:g}", places=(knobs.place("loss.temperature"),))
