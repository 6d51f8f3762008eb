"""Training score against held-out score at the first evaluations.

## Definition
Training accuracy minus held-out accuracy at the first two evaluations.

## Derivation
Early on nothing can be known by heart: what differs then, the evaluation or its data make differ.

## Healthy band
−0.15 to 0.1.

## When it misleads
A first evaluation after many epochs; training accuracy that is a mean over a whole epoch (then below zero).
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.observations._accuracy import both
from wheeltapper.run.model import Series
from wheeltapper.study.outcome import Curve

ABOUT = "evaluation"
EDGES = (-0.3, -0.15, 0.1, 0.25, 0.5)
BAND = (-0.15, 0.1)


def observe(train_accuracy: Series, score_curve: Curve, mixing: str) -> Reading | Unknown:
    if mixing:
        return Unknown(mixing)
    if score_curve.share[0] > 0.25:
        return Unknown("the first evaluation came after a quarter of the run", ("an early evaluation",))
    return both(train_accuracy, score_curve, 0)
