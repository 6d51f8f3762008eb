"""How far the training loss rose above its best, in powers of ten.

## Definition
log10 of the largest training loss after the best, over the best.

## Derivation
Scatter multiplies a loss by a few; a rise by orders of magnitude is never scatter.

## Healthy band
Below 0.7 (five times).

## When it misleads
Losses that come near zero, whose ratios are large; one bad batch that the run recovers from.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (0.2, 0.7, 1.5, 3.0)
BAND = (None, 0.7)


def observe(train_curve: Curve) -> Reading | Unknown:
    c = train_curve
    if c.scale != "ratio" or len(c) < 5:
        return Unknown("the training loss is too short or goes below zero", ("train/loss",))
    spot = int(np.argmin(c.error))
    after = c.error[spot:]
    top = spot + int(np.argmax(after))
    value = math.log10(max(float(c.error[top]), 1e-12) / max(float(np.median(c.error)), float(c.error[spot]), 1e-12))
    text = f"{c.series.name} rose to {c.error[top]:.4g} at {c.series.clock} {c.at(top):g}; its median is {np.median(c.error):.4g}"
    return Reading(max(value, 0.0), text, series=c.series.name, clock=c.series.clock, onset=c.at(top))
