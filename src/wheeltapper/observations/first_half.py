"""How much of the training loss's fall came in the first half.

## Definition
(first − loss at 50 %) / (first − last) of the training loss.

## Derivation
0.5 is a straight line: the steps are so small that the loss is linear in them. Learning that bends gives 0.85 and more.

## Healthy band
Above 0.55.

## When it misleads
Long warm-ups, tasks with a late breakthrough, cuts of the rate.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
LIVE = False
EDGES = (0.3, 0.55, 0.7, 0.85, 0.95, 1.05)
BAND = (0.55, None)


def observe(steady_curve: Curve) -> Reading | Unknown:
    c = steady_curve
    whole = c.first - c.last
    if len(c) < 8 or whole <= 3 * c.noise:
        return Unknown("the training loss is too short or did not fall", ("a longer record",))
    value = (c.first - c.level(0.5)) / whole
    text = f"half-way {c.series.name} was at {c.level(0.5):.4g}, between {c.first:.4g} and {c.last:.4g}"
    return Reading(value, text, 2 * c.noise / whole, c.series.name, c.series.clock)
