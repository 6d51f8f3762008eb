"""How fast the training loss still fell at the end.

## Definition
(loss at 80 % − last) / (first − last) of the training loss.

## Derivation
A straight line would give 0.2. Runs that had time and rate enough end flat; one that still falls as fast as ever was too slow
or too short.

## Healthy band
Below 0.1.

## When it misleads
Records that stop early; a rate that is cut near the end.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
LIVE = False
EDGES = (-0.1, 0.02, 0.05, 0.1, 0.17)
BAND = (None, 0.1)


def observe(steady_curve: Curve) -> Reading | Unknown:
    c = steady_curve
    whole = c.first - c.last
    if len(c) < 12 or whole <= 3 * c.noise:
        return Unknown("the training loss is too short or did not fall", ("a longer record",))
    value = (c.level(0.8) - c.last) / whole
    text = f"in the last fifth {c.series.name} still went from {c.level(0.8):.4g} to {c.last:.4g}"
    return Reading(value, text, 2 * c.noise / whole, c.series.name, c.series.clock)
