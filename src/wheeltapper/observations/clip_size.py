"""The clipping threshold against what is usual.

## Definition
log10 of the clipping threshold.

## Derivation
Recipes clip at 0.1 to 10. A threshold of 1e-3 and below leaves SGD no step, and brings Adam near its epsilon.

## Healthy band
Above −2.

## When it misleads
Losses of an unusual scale.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (-4.0, -2.0)
BAND = (-2.0, None)


def observe(knobs: Knobs) -> Reading | Unknown:
    limit = number(knobs.value("clip.norm")) or number(knobs.value("clip.value"))
    if limit is None or limit <= 0:
        return Unknown("no clipping threshold is set", ("clip norm",))
    return Reading(math.log10(limit), f"gradients are clipped at {limit:g}", places=(knobs.place("clip.norm"),))
