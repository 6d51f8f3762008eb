"""The last rows against the stretch before them.

## Definition
(worst of the last three values' best − level before) / scatter before, for the training loss and the held-out score; the larger.

## Derivation
Three values in a row that are all worse than the level before by many scatters are a fall that has just begun; a median over
a longer end would argue it away.

## Healthy band
Below 5.

## When it misleads
A last batch of another size; an evaluation at the end on other data.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.observations._breaks import fall_at_end
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (3.0, 5.0, 10.0, 30.0)
BAND = (None, 5.0)


def observe(train_curve: Curve | None = None, held_out: Curve | None = None) -> Reading | Unknown:
    found = [r for c in (train_curve, held_out) if c is not None and (r := fall_at_end(c)) is not None]
    if not found:
        return Unknown("too few values to tell an end from what came before", ("a longer record",))
    return max(found, key=lambda reading: reading.value)
