"""How the memory in use grew.

## Definition
log2 of the memory over the last tenth against the first tenth, after the first few rows.

## Derivation
A training step needs the same memory every time: what grows in a straight line is kept by somebody.

## Healthy band
Below 0.3.

## When it misleads
Growing batches or pictures by plan, caches that fill.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run

ABOUT = "efficiency"
EDGES = (0.1, 0.3, 0.8)
BAND = (None, 0.3)


def observe(run: Run) -> Reading | Unknown:
    found = []
    for s in run.series.values():
        x = s.values[s.finite & (s.values > 0)] if s.quantity == "memory" else np.empty(0)
        if len(x) < 6:
            continue
        k = max(2, len(x) // 10)
        early, late = float(np.median(x[1 : 1 + k])), float(np.median(x[-k:]))
        middle = float(np.median(x[len(x) // 2 - k // 2 : len(x) // 2 + k // 2 + 1]))
        steady = early <= middle <= late
        text = f"{s.name} went from {early:.4g} over {middle:.4g} to {late:.4g}"
        found.append(
            Reading(
                math.log2(late / early) if steady else 0.0, text, series=s.name, clock=s.clock, onset=float(s.at[0])
            )
        )
    if not found:
        return Unknown("memory is not logged", ("memory in use",))
    return max(found, key=lambda reading: reading.value)
