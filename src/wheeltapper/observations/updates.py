"""How many updates the run made.

## Definition
log10 of the optimizer updates that were planned (else made).

## Derivation
A few hundred updates are a test, not a training.

## Healthy band
Above 2.

## When it misleads
Fine-tuning.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.length import Length

ABOUT = "learning"
SETTING = True
LIVE = False
EDGES = (2.0,)
BAND = (2.0, None)


def observe(length: Length) -> Reading | Unknown:
    if not length.updates:
        return Unknown("the number of updates is not known", ("steps",))
    return Reading(math.log10(length.updates), f"the run has {length.updates:g} updates")
