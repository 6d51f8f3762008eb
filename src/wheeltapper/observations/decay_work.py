"""What weight decay does over the run.

## Definition
log10 of the sum of rate × weight decay over all updates (decoupled or with SGD).

## Derivation
Weights shrink by exp(−sum) where nothing holds them: above about 3 the decay sets their size, above 30 it beats learning.

## Healthy band
Below 0.5 (a sum of 3).

## When it misleads
Normalised networks, whose scale is free.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.length import Length, Rates

ABOUT = "learning"
SETTING = True
EDGES = (0.5, 1.0, 1.7)
BAND = (None, 0.5)


def observe(rates: Rates, length: Length, knobs: Knobs) -> Reading | Unknown:
    decay = number(knobs.value("optimizer.weight_decay"))
    updates = length.done or length.planned
    if decay is None or decay < 0 or not updates:
        return Unknown("the weight decay or the number of updates is not known", ("weight decay",))
    total = rates.mean() * decay * updates
    text = f"weight decay {decay:g} over {updates:g} updates at rates of {rates.mean():.2g} shrinks free weights by exp(−{total:.2g})"
    return Reading(math.log10(max(total, 1e-6)), text, places=(knobs.place("optimizer.weight_decay"),))
