"""How far the weights of several losses lie apart.

## Definition
log10 of the largest over the smallest weight among the losses that are added up, those of zero left out.

## Derivation
Weights make terms of different size comparable; terms of one objective seldom differ by more than some hundreds. A weight a hundred
thousand times smaller than its neighbour's switches its term off, a larger one drowns the rest.

## Healthy band
Below 3.5.

## When it misleads
Terms in units of very different size (a KL in nats beside a mean over pixels); gradient penalties.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (2.5, 3.5, 4.5)
BAND = (None, 3.5)


def observe(knobs: Knobs) -> Reading | Unknown:
    weights = knobs.value("loss.weights")
    known = {name: abs(w) for name, value in weights.items() if (w := number(value))} if isinstance(weights, dict) else {}
    if len(known) < 2:
        return Unknown("the weights of several losses are not set", ("loss weights",))
    low, high = min(known, key=lambda name: known[name]), max(known, key=lambda name: known[name])
    text = f"the loss {high} is weighed by {known[high]:g}, {low} by {known[low]:g}"
    return Reading(math.log10(known[high] / known[low]), text, places=(knobs.place("loss.weights"),))
