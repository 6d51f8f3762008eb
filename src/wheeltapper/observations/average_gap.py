"""The score of the averaged weights against that of the raw ones.

## Definition
log2 of the error of the averaged weights over that of the raw weights, over the last evaluations.

## Derivation
An average should be as good or better. Twice the error means that it holds other weights: old ones, or statistics that do not
belong to them.

## Healthy band
Below 0.15.

## When it misleads
Young averages, whose gap shrinks.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.observations._pairs import averaged_and_raw
from wheeltapper.reading.record import ClockName
from wheeltapper.run.model import Run

ABOUT = "evaluation"
EDGES = (0.03, 0.15, 0.5, 1.5)
BAND = (None, 0.15)


def observe(run: Run, clock_ends: dict[ClockName, float]) -> Reading | Unknown:
    pairs = averaged_and_raw(run, clock_ends)
    if not pairs:
        return Unknown("no score is logged for both the averaged and the raw weights", ("scores of both weights",))
    readings = []
    for ema, raw in pairs:
        k = max(1, len(ema) // 10)
        averaged, plain = float(np.median(ema.error[-k:])), float(np.median(raw.error[-k:]))
        if averaged > 0 and plain > 0:
            text = f"{ema.series.name} ends at {ema.shown(averaged):.4g}, {raw.series.name} at {raw.shown(plain):.4g}"
            readings.append(
                Reading(
                    math.log2(averaged / plain), text, series=ema.series.name, clock=ema.series.clock, onset=ema.at(0)
                )
            )
    if not readings:
        return Unknown("the scores of both weights have no ratio")
    return max(readings, key=lambda reading: reading.value)
