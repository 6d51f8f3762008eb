"""The error on held-out pictures against the error in training.

## Definition
log2 of the root mean square error that the held-out PSNR stands for, over 1.3 times the mean absolute error in training (or the
root of its squared error).

## Derivation
PSNR = −20 log10 RMS for pictures between 0 and 1, and the RMS of errors of a Laplace law is 1.4 times their mean. Both are of
the same task: far apart, training and evaluation do not look at the same pictures.

## Healthy band
−1 to 1.3.

## When it misleads
PSNR of another colour space or range; pictures with cropped borders.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run, Series
from wheeltapper.study.outcome import Curve

ABOUT = "evaluation"
EDGES = (-2.0, -1.0, 1.3, 2.2)
BAND = (-1.0, 1.3)


def observe(run: Run, score_curve: Curve) -> Reading | Unknown:
    if score_curve.series.quantity != "psnr":
        return Unknown("no PSNR is logged", ("val/psnr",))
    pixel = [
        s
        for s in run.series.values()
        if s.split == "train" and s.quantity in ("loss", "mae", "mse") and int(s.finite.sum()) >= 5 and _kind(s)
    ]
    if not pixel:
        return Unknown("no loss in pixels is logged", ("the pixel loss",))
    s = max(pixel, key=lambda s: (s.part is not None, len(s)))
    x = s.values[s.finite]
    level = float(np.median(x[-max(3, len(x) // 10) :]))
    if level <= 0:
        return Unknown("the pixel loss is zero")
    rms = 1.3 * level if _kind(s) == "absolute" else math.sqrt(level)
    text = f"{score_curve.series.name} of {score_curve.shown(score_curve.last):.4g} dB is an error of {score_curve.last:.3g}; {s.name} of {level:.3g} is one of {rms:.3g}"
    return Reading(
        math.log2(score_curve.last / rms), text, series=score_curve.series.name, clock=score_curve.series.clock
    )


def _kind(s: Series) -> str:
    name = f"{s.part or ''} {s.raw}".lower()
    if any(word in name for word in ("l1", "mae", "pix", "charbonnier")):
        return "absolute"
    return "squared" if any(word in name for word in ("mse", "l2")) else ""
