"""How far the held-out error fell, in halvings.

## Definition
log2 of the first held-out error over the best one.

## Derivation
A ratio of errors has no unit; in halvings a fall from 4 to 1 counts as one from 0.04 to 0.01.

## Healthy band
Above 0.08 (6 %). A fall of many halvings within a short run, on training and held-out data alike, is too good for most tasks.

## When it misleads
A first evaluation that came late; a fine-tuned model that begins near its best.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
GROUP = "improvement"
EDGES = (0.01, 0.03, 0.08, 0.25, 0.7, 1.5, 3.0, 5.0)
BAND = (0.08, 5.0)


def observe(held_out: Curve) -> Reading | Unknown:
    if held_out.scale != "ratio":
        return Unknown("the score has no zero, so ratios of it mean nothing")
    value = math.log2(max(held_out.first, 1e-12) / max(held_out.best, 1e-12))
    text = f"{held_out.series.name} went from {held_out.shown(held_out.first):.4g} to {held_out.shown(held_out.best):.4g} at best"
    return Reading(value, text, series=held_out.series.name, clock=held_out.series.clock)
