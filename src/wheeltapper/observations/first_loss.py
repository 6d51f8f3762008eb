"""The first loss against that of an untrained model.

## Definition
log2 of the first training loss over ln C (or the other closed form of the objective).

## Derivation
An untrained classifier gives every answer the same probability, so its loss is ln C. Far above: the first layer's scale, a
summed loss or a rate that exploded at once. Far below: another loss than was thought, or a trained model.

## Healthy band
−0.6 to 0.6.

## When it misleads
A first row that averages many steps; label smoothing and auxiliary terms.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.levels import Choices
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (-1.5, -0.6, 0.6, 1.5, 3.0)
BAND = (-0.6, 0.6)


def observe(train_curve: Curve, choices: Choices) -> Reading | Unknown:
    if not choices.sure or train_curve.series.quantity not in ("loss", "nll") or train_curve.share[0] > 0.01:
        return Unknown(
            "the number of answers or the first loss is not known", ("the number of classes", "the first rows")
        )
    level = math.log(choices.count)
    value = math.log2(max(train_curve.error[0], 1e-9) / level)
    text = f"the first loss is {train_curve.error[0]:.4g}; an untrained model gives {level:.4g} ({choices.how})"
    return Reading(value, text, series=train_curve.series.name, clock=train_curve.series.clock)
