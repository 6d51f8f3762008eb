"""Scatter of the training loss against what it won.

## Definition
Scatter of one value of the training loss over its gain.

## Derivation
How much of the curve is noise. A loss that scatters by more than it won says little, and often comes from a rate that throws
the weights about.

## Healthy band
Below 0.3.

## When it misleads
Losses of diffusion and of single samples scatter by nature.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (0.02, 0.1, 0.3, 0.7, 1.5)
BAND = (None, 0.3)


def observe(train_curve: Curve) -> Reading | Unknown:
    if len(train_curve) < 12 or train_curve.gain <= 0:
        return Unknown("the training loss is too short or never fell", ("a longer record",))
    value = train_curve.noise / train_curve.gain
    text = f"{train_curve.series.name} scatters by {value:.0%} of what it won"
    return Reading(value, text, series=train_curve.series.name, clock=train_curve.series.clock)
