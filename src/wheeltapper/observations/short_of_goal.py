"""The held-out result against what the log itself names as the goal.

## Definition
log2 of the best held-out error over the error of the teacher, ensemble or oracle that the log names.

## Derivation
A student of the same kind comes near its teacher, and a policy near the best one that is known. One that stays at several times
the error did not get what it was to learn from.

## Healthy band
Below 1: twice the error.

## When it misleads
A student that is much smaller than its teacher; a goal near perfection, of which every error is a large multiple.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.reading.record import ClockName
from wheeltapper.run.model import Run
from wheeltapper.study.references import against

ABOUT = "learning"
EDGES = (0.5, 1.0, 2.0)
BAND = (None, 1.0)
LEAST = 0.02  # error of a goal: below, every error is a large multiple of it


def observe(run: Run, clock_ends: dict[ClockName, float]) -> Reading | Unknown:
    found = against(run, clock_ends, "goal")
    if not found:
        return Unknown("the log names no goal", ("the score of a teacher",))
    curve, error, told = min(found, key=lambda f: f[0].best / f[1])
    text = f"{curve.series.name} reached {curve.shown(curve.best):.4g}; the log gives {curve.shown(error):.4g} as the goal"
    value = math.log2(max(curve.best, 1e-12) / max(error, LEAST))
    return Reading(value, text, series=curve.series.name, clock=curve.series.clock, places=told)
