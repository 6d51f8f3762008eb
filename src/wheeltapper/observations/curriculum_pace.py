"""How soon a curriculum reaches its full difficulty.

## Definition
Length of the curriculum over the length of the run.

## Derivation
A curriculum that is over at once is none; one that ends with the run leaves no time for the task itself.

## Healthy band
Any: it only makes some causes possible.

## When it misleads
It speaks only together with other numbers.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.length import Length

ABOUT = "learning"
SETTING = True
EDGES = (0.1, 0.3, 0.7)
BAND = (None, None)


def observe(knobs: Knobs, length: Length) -> Reading | Unknown:
    steps = number(knobs.value("curriculum.steps"))
    if not knobs.value("curriculum.enabled") and steps is None:
        return Unknown("no curriculum is set", ("curriculum",))
    value = steps / length.updates if steps and length.updates else 0.5
    return Reading(value, f"the curriculum takes {value:.0%} of the run", places=(knobs.place("curriculum.steps"),))
