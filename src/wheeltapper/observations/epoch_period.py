"""Whether the training loss repeats with the epoch.

## Definition
Correlation of the residuals of the training loss at the lag of one epoch, minus that at lags beside it.

## Derivation
Shuffled data has no memory of the epoch. Data in one fixed order repeats its easy and hard stretches.

## Healthy band
Below 0.3.

## When it misleads
Very short epochs; logs that average over an epoch.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.length import Length
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (0.15, 0.3, 0.5)
BAND = (None, 0.3)


def observe(train_curve: Curve, length: Length) -> Reading | Unknown:
    c, per_epoch = train_curve, length.per_epoch
    if not per_epoch or c.series.clock != "step" or len(c) < 40:
        return Unknown("the steps of an epoch are not known, or the loss is not logged by step", ("steps per epoch",))
    spacing = float(np.median(np.diff(c.share))) * float(c.series.at[-1])
    lag = per_epoch / max(spacing, 1e-9)
    if lag < 4 or lag > len(c) / 3 or abs(lag - round(lag)) > 0.2 * 1:
        return Unknown("an epoch has too few logged rows, or the record too few epochs", ("more frequent logging",))
    residual = c.error - c.smooth
    residual = np.clip(residual, *np.quantile(residual, [0.02, 0.98]))
    at, beside = (
        _correlation(residual, round(lag)),
        [_correlation(residual, round(lag) + d) for d in (-3, -2, 2, 3) if round(lag) + d > 1],
    )
    value = at - max(0.0, float(np.median(beside)) if beside else 0.0)
    text = f"residuals of {c.series.name} correlate by {at:.2f} at the lag of one epoch, by {np.median(beside) if beside else 0:.2f} beside it"
    return Reading(value, text, 1 / math.sqrt(len(c)), c.series.name, c.series.clock)


def _correlation(x: np.ndarray, lag: int) -> float:
    a, b = x[:-lag] - x[:-lag].mean(), x[lag:] - x[lag:].mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale > 0 else 0.0
