"""The held-out result against what the log itself says can be had without learning.

## Definition
log2 of the best held-out error over the error of the baseline that the log names (naive forecast, majority class, random policy, the
untrained model, the input itself), the worst of them if there are several. Below 0 the baseline is beaten.

## Derivation
Who prints a baseline says what learning must beat, in the units of this very data. A model that does not is of no use, whatever its
loss did.

## Healthy band
Below −0.15: a tenth better.

## When it misleads
A baseline that is strong on purpose (last year's model, an ensemble); a held-out set other than the baseline's.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.reading.record import ClockName
from wheeltapper.run.model import Run
from wheeltapper.study.references import against

ABOUT = "learning"
EDGES = (-0.6, -0.15, 0.0)
BAND = (None, -0.15)


def observe(run: Run, clock_ends: dict[ClockName, float]) -> Reading | Unknown:
    found = against(run, clock_ends, "floor")
    if not found:
        return Unknown("the log names no baseline", ("a baseline",))
    curve, error, told = max(found, key=lambda f: f[0].best / f[1])
    text = f"{curve.series.name} reached {curve.shown(curve.best):.4g}; the log gives {curve.shown(error):.4g} as what needs no learning"
    return Reading(math.log2(max(curve.best, 1e-12) / error), text, series=curve.series.name, clock=curve.series.clock, places=told)
