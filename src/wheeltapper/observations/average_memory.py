"""The memory of the averaged weights against the length of the run.

## Definition
1 / (1 − decay) × update interval / updates.

## Derivation
An average remembers about 1/(1 − decay) of its updates. At a memory as long as the run it still holds the first weights.

## Healthy band
Below 0.25.

## When it misleads
Averages with a decay that rises from small values.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.length import Length

ABOUT = "evaluation"
SETTING = True
EDGES = (0.25, 0.6, 2.0)
BAND = (None, 0.25)


def observe(knobs: Knobs, length: Length) -> Reading | Unknown:
    decay, updates = number(knobs.value("ema.decay")), length.done or length.planned
    if decay is None or not 0 < decay < 1 or not updates or knobs.value("ema.enabled") is False:
        return Unknown("no average of the weights with a known decay", ("ema decay",))
    every = number(knobs.value("ema.every")) or 1.0
    value = every / (1.0 - decay) / updates
    text = f"the average (decay {decay:g}) remembers {every / (1 - decay):,.4g} steps of a run of {updates:,.4g}"
    return Reading(value, text, places=(knobs.place("ema.decay"),))
