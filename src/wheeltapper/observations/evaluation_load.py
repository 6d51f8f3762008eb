"""How many samples are evaluated for each one that is trained on.

## Definition
log10 of evaluations × held-out samples / (updates × batch).

## Derivation
A step on a sample costs three times its evaluation (forward, backward, backward). From 3 evaluated samples for one trained
on, the run spends more time on looking than on learning.

## Healthy band
Below 0.5 (3 to 1).

## When it misleads
Held-out samples that are cheaper than the trained ones.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.length import Length, batch_of
from wheeltapper.study.outcome import Curve

ABOUT = "efficiency"
EDGES = (0.5, 0.9)
BAND = (None, 0.5)


def observe(knobs: Knobs, length: Length, held_out: Curve) -> Reading | Unknown:
    size, batch = number(knobs.value("data.val_size")), batch_of(knobs)
    if not size or not batch or not length.done:
        return Unknown("held-out samples, batch or updates are not known", ("the number of held-out samples",))
    times = len(held_out.series)
    value = math.log10(max(times * size / (length.done * batch), 1e-6))
    text = f"{times} evaluations of {size:g} samples stand beside {length.done:g} updates of {batch:g}"
    return Reading(value, text, series=held_out.series.name, places=(knobs.place("data.val_size"),))
