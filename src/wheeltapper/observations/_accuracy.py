"""Training and held-out accuracy at one end of the record."""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Series
from wheeltapper.study.outcome import Curve, curve_of

_SPLIT = re.compile(r"train(ing)?|valid(ation)?|val|eval(uation)?|test|dev|ema|avg|mean|epoch|step")
_SAME = {"acc": "accuracy", "top1": "accuracy", "acc1": "accuracy", "prec1": "accuracy"}


def _bare(series: Series) -> str:
    """A name without its split: an accuracy of pairs is not one of neighbours."""
    name = re.sub(r"[^a-z0-9]+", "", _SPLIT.sub("", series.raw.lower()))
    return _SAME.get(name, name)


def both(train_accuracy: Series, score: Curve, spot: int) -> Reading | Unknown:
    """Training minus held-out accuracy at the first (0) or over the last (-1) evaluations."""
    if score.series.quantity != "accuracy" or train_accuracy is score.series:
        return Unknown("accuracy is not logged on both", ("train/accuracy and val/accuracy",))
    end = max(float(train_accuracy.at[-1]), float(score.series.at[-1]))
    known = curve_of(train_accuracy, {train_accuracy.clock: end, score.series.clock: end})
    if known is None or _bare(train_accuracy) != _bare(score.series):
        return Unknown("accuracy is not logged on both", ("train/accuracy and val/accuracy",))
    k = max(1, len(score) // 20)
    part = slice(0, min(2, len(score))) if spot == 0 else slice(len(score) - k, len(score))
    trained = 1.0 - known.level(float(np.median(score.share[part])))
    held = 1.0 - float(np.median(score.error[part]))
    where = "the first evaluations" if spot == 0 else "the end"
    text = f"at {where} the accuracy is {trained:.3g} in training and {held:.3g} on held-out data"
    return Reading(trained - held, text, score.noise, score.series.name, score.series.clock, score.at(0))
