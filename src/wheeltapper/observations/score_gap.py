"""Training score against held-out score at the end.

## Definition
Training accuracy minus held-out accuracy over the last evaluations.

## Derivation
The same model on both; the difference is what it knows by heart, or what the evaluation gets wrong.

## Healthy band
−0.1 to 0.15.

## When it misleads
Augmented or mixed training pictures (below zero); small held-out sets.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.observations._accuracy import both
from wheeltapper.run.model import Series
from wheeltapper.study.outcome import Curve

ABOUT = "evaluation"
EDGES = (-0.3, -0.1, 0.06, 0.15, 0.3, 0.5)
BAND = (-0.1, 0.15)


def observe(train_accuracy: Series, score_curve: Curve, mixing: str) -> Reading | Unknown:
    if mixing:
        return Unknown(mixing)
    return both(train_accuracy, score_curve, -1)
