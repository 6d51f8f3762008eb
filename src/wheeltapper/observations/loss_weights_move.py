"""Whether the weights of the losses change by themselves.

## Definition
1 where dynamic loss weights are on, 2 where they have no upper bound, else 0.

## Derivation
Weights that follow the losses can run away where nothing bounds them.

## Healthy band
Below 2.

## When it misleads
Bounds that are in the code.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (0.5, 1.5)
BAND = (None, 1.5)


def observe(knobs: Knobs) -> Reading | Unknown:
    on = knobs.value("loss.dynamic_weights")
    rate, top = knobs.value("loss.dynamic_eta"), number(knobs.value("loss.dynamic_max"))
    if on is None and rate is None and top is None:
        return Unknown("nothing is said about dynamic weights", ("the weights of the losses",))
    value = 0.0 if on is False else 1.0 if top is not None and top < 1e4 else 2.0
    bound = "no bound" if value == 2 else f"a bound of {top:g}" if top else "a bound"
    return Reading(value, f"dynamic loss weights are {'off' if value == 0 else f'on, with {bound}'}")
