"""What was learned on the training data, against a model that learned nothing.

## Definition
1 − loss / trivial loss at the best stretch of the training loss; trivial is ln C, else the first value of the record.

## Derivation
As `skill`, on the data that was trained on: the two together tell a model that cannot learn from one that cannot generalise.

## Healthy band
Above 0.15.

## When it misleads
Losses with a floor (label smoothing, the entropy of the data) keep a low skill although all is learned that can be.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.levels import Level, skill
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
GROUP = "improvement"
EDGES = (0.02, 0.06, 0.15, 0.35, 0.7, 0.95, 0.995)
BAND = (0.15, None)


def observe(train_curve: Curve, trivial_train: Level) -> Reading | Unknown:
    if trivial_train.error <= 0:
        return Unknown("the loss began below zero, so a share of it means nothing")
    value, sigma = skill(train_curve, trivial_train)
    name = train_curve.series.name
    text = f"{name} reached {train_curve.best:.4g}; having learned nothing gives {trivial_train.error:.4g} ({trivial_train.how})"
    return Reading(value, text, sigma, name, train_curve.series.clock)
