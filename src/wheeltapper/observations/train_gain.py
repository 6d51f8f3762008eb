"""How far the training loss fell, in halvings.

## Definition
log2 of the first training loss over the last level.

## Derivation
As `held-out-gain`, on the training loss, at its end.

## Healthy band
Above 0.08 (6 %).

## When it misleads
A loss with a high floor: noise of the labels, diffusion, a curriculum that grows harder.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
GROUP = "improvement"
EDGES = (-0.05, 0.01, 0.03, 0.08, 0.25, 0.7, 1.5, 3.0)
BAND = (0.08, None)


def observe(steady_curve: Curve) -> Reading | Unknown:
    if steady_curve.scale != "ratio":
        return Unknown("the loss goes below zero, so ratios of it mean nothing")
    value = math.log2(max(steady_curve.first, 1e-12) / max(steady_curve.last, 1e-12))
    text = f"{steady_curve.series.name} went from {steady_curve.first:.4g} to {steady_curve.last:.4g}"
    return Reading(value, text, series=steady_curve.series.name, clock=steady_curve.series.clock)
