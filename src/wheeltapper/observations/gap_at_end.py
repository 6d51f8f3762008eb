"""Held-out loss against training loss at the end.

## Definition
log2 of the held-out loss over the training loss over the last evaluations.

## Derivation
What the model knows by heart and not in general. Far below zero: training is made harder than the evaluation, or its targets
are wrong.

## Healthy band
−0.7 to 0.8.

## When it misleads
As `gap-at-start`.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (-2.0, -0.7, -0.2, 0.15, 0.4, 0.8, 1.5, 3.0)
BAND = (-0.7, 0.8)
APART = 0.25  # of the training loss, at the first evaluation already: no model knows unseen data four times better


def observe(train_curve: Curve, val_curve: Curve, mixing: str) -> Reading | Unknown:
    if mixing:
        return Unknown(mixing)
    return gap(train_curve, val_curve, -1)


def _near(train: Curve, share: float, held: float) -> float:
    """The training loss at a first evaluation, as near to the held-out one as the rows on both sides allow: in between it may
    have fallen by halves."""
    spot = int(np.searchsorted(train.share, share))
    around = train.error[max(0, spot - 2) : spot + 2]
    return float(np.clip(held, around.min(), around.max())) if len(around) else train.level(share)


def gap(train: Curve, val: Curve, spot: int) -> Reading | Unknown:
    """log2 of held-out over training loss at one end of the record; both must be of one kind."""
    if train.scale != "ratio" or val.scale != "ratio" or train.series.quantity != val.series.quantity:
        return Unknown("the two losses are not of one kind", ("the same loss on held-out data",))
    k = max(1, len(val) // 20)
    part = slice(0, 1) if spot == 0 else slice(len(val) - k, len(val))
    held = float(np.median(val.error[part]))
    trained = _near(train, float(val.share[0]), held) if spot == 0 else train.level(float(np.median(val.share[part])))
    if held <= 0 or trained <= 0:
        return Unknown("a loss of zero has no ratio")
    first = float(val.error[0])
    if 0 < first < APART * _near(train, float(val.share[0]), first):
        return Unknown("held-out and training loss differ by a constant: a sum and a mean, or two units")
    at = val.at(0 if spot == 0 else len(val) - 1)
    text = f"at {val.series.clock} {at:g} {val.series.name} is {held:.4g} and {train.series.name} {trained:.4g}"
    sigma = train.noise / max(trained, 1e-12)
    return Reading(math.log2(held / trained), text, sigma, val.series.name, val.series.clock, at)
