"""Held-out against training loss where dropout handicaps training.

## Definition
The gap at the first evaluations, in halvings, where dropout is 0.08 or more.

## Derivation
Dropout makes the training loss worse than the model is, so early on the held-out loss lies below it. Where it does not, dropout is
on in the evaluation too.

## Healthy band
Below 0.02.

## When it misleads
Training losses that are averages over a long stretch behind the evaluation.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.outcome import Curve

ABOUT = "evaluation"
EDGES = (-0.3, -0.05, 0.02, 0.15)
BAND = (None, 0.02)


def observe(knobs: Knobs, train_curve: Curve, val_curve: Curve) -> Reading | Unknown:
    value = number(knobs.value("augment.dropout"))
    if value is None or value < 0.08 or len(val_curve) < 4:
        return Unknown("no dropout is set, or fewer than four evaluations", ("dropout",))
    spots = [i for i in range(1, len(val_curve)) if val_curve.share[i] <= 0.5][:4]
    if (
        not spots
        or val_curve.scale != "ratio"
        or train_curve.scale != "ratio"
        or train_curve.series.quantity != val_curve.series.quantity
    ):
        return Unknown("the two losses are not of one kind", ("val/loss",))
    gaps = [
        math.log2(max(val_curve.error[i], 1e-9) / max(train_curve.level(float(val_curve.share[i])), 1e-9))
        for i in spots
    ]
    size = float(np.median(gaps))
    text = f"dropout is {value:g}, and early on the held-out loss is {2**size:.3g} times the training loss"
    return Reading(size, text, series=val_curve.series.name, clock=val_curve.series.clock)
