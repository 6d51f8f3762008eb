"""The warm-up that was set against the length of the run.

## Definition
Warm-up over the planned length, in updates.

## Derivation
A warm-up as long as the run never reaches the rate that was set.

## Healthy band
Below 0.35.

## When it misleads
A length that is not known well.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.horizon import WarmUp

ABOUT = "learning"
SETTING = True
EDGES = (0.35, 0.9)
BAND = (None, 0.35)


def observe(warm_up: WarmUp) -> Reading | Unknown:
    value = warm_up.updates / warm_up.run
    text = f"the warm-up is set to {warm_up.updates:g} of {warm_up.run:g} updates"
    return Reading(value, text, places=(warm_up.place,))
