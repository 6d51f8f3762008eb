"""Held-out loss against training loss at the first evaluation.

## Definition
log2 of the held-out loss over the training loss at the first evaluation, before anything can be memorised.

## Derivation
Both losses are of the same model on data of the same kind: before anything is memorised they are equal but for dropout and
augmentation. A gap from the start is a matter of the evaluation, or of the data.

## Healthy band
−0.7 to 0.4.

## When it misleads
A late first evaluation (the training loss is taken as near as the rows on both sides of it allow); training losses that are averages over an epoch in which much was learned; other objectives in
training (mixup, noise, auxiliary terms).
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.observations.gap_at_end import gap
from wheeltapper.study.outcome import Curve

ABOUT = "evaluation"
EDGES = (-2.0, -0.7, -0.2, 0.15, 0.4, 0.8, 1.5)
BAND = (-0.7, 0.4)


def observe(train_curve: Curve, val_curve: Curve, mixing: str) -> Reading | Unknown:
    if mixing:
        return Unknown(mixing)
    if val_curve.share[0] > 0.25:
        return Unknown("the first evaluation came after a quarter of the run", ("an early evaluation",))
    return gap(train_curve, val_curve, 0)
