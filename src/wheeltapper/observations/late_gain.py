"""How much of the training loss's fall came after the first tenth of the run.

## Definition
(loss at 10 % − last) / (first − last) of the training loss.

## Derivation
Learning curves fall like a power of the step: between a tenth of the run and its end there is always something to win.
Almost nothing means that the loss froze at once, at the level of the commonest answer or of what untrained layers can do.

## Healthy band
Above 0.05.

## When it misleads
Tasks that are solved within the first tenth; records that begin late.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
LIVE = False
EDGES = (0.0, 0.02, 0.05, 0.15, 0.4, 0.8)
BAND = (0.05, None)


def observe(steady_curve: Curve) -> Reading | Unknown:
    c = steady_curve
    whole = c.first - c.last
    if len(c) < 12 or c.share[0] > 0.05 or abs(whole) <= 2 * c.noise:
        return Unknown(
            "the training loss is too short, begins late or did not move", ("train/loss from the first steps",)
        )
    value = (c.level(0.1) - c.last) / abs(whole)
    text = f"after the first tenth of the run {c.series.name} went from {c.level(0.1):.4g} to {c.last:.4g}, of {c.first:.4g} to {c.last:.4g} in all"
    return Reading(value, text, 2 * c.noise / abs(whole), c.series.name, c.series.clock)
