"""A weight or a term of the loss that grows without bound.

## Definition
log10 of the last level of the fastest growing part or weight of the loss over its first level.

## Derivation
Terms fall as they are learned, and weights that balance them stay within bounds. One that grows by tens takes the gradient.

## Healthy band
Below 0.7.

## When it misleads
Weights that rise by plan (KL warm-up).
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run

ABOUT = "learning"
EDGES = (0.3, 0.7, 1.5)
BAND = (None, 0.7)


def observe(run: Run) -> Reading | Unknown:
    found = []
    for s in run.series.values():
        named = "weight" in s.raw.lower() and s.quantity not in ("weight_decay", "weight_norm")
        if not (named or (s.quantity == "loss" and s.part)) or s.split == "val":
            continue
        x = np.abs(s.values[s.finite])
        if len(x) < 10:
            continue
        k = max(2, len(x) // 10)
        early, late = float(np.median(x[:k])), float(np.median(x[-k:]))
        if early > 0 and late > 0:
            text = f"{s.name} went from {early:.3g} to {late:.3g}"
            found.append(Reading(math.log10(late / early), text, series=s.name, clock=s.clock))
    if not found:
        return Unknown("no parts or weights of the loss are logged", ("the parts of the loss",))
    return max(found, key=lambda reading: reading.value)
