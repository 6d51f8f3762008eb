"""A metric takes a value that its definition forbids.

## What it sees
A negative FID, KID far below zero, distance or error; an accuracy, mAP, IoU or SSIM above 1 (100 %); a
PSNR below 0 or above 200 dB; a perplexity below 1; an FID beyond any two sets of images.

## Why it matters
The number is broken, so nothing may be concluded from it, and a checkpoint chosen by it is arbitrary.

## How it decides
By definition of the metric, with room for rounding. FID between two real image sets of Inception features
stays under about 10^4; a value beyond 10^6 is numerical (a singular covariance, too few samples). An accuracy
that lies above 100 on most rows is no share: right answers are counted, which is a watch.

## When it is wrong
A metric that reuses a known name for something else.

## References
- Heusel et al. 2017, GANs Trained by a Two Time-Scale Update Rule (arXiv:1706.08500), the definition of
  FID.
- The range of each metric follows from its definition.
"""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.settings.knobs import Knobs

ID = "impossible-value"
LIVE = True
SHARE = re.compile(r"class|top|rate|\berr[15]?\b|cls", re.IGNORECASE)  # an error that is a share by its name
# quantity: (lowest, highest) that the definition allows; shares are in fractions here.
BOUNDS: dict[str, tuple[float, float]] = {
    "fid": (-1.0, 1e6), "kid": (-1.0, 1e4), "inception_score": (0.99, 1e5), "psnr": (-np.inf, 200.0),
    "ssim": (-1.001, 1.001), "lpips": (-1e-6, 1e3), "perplexity": (0.99, np.inf), "accuracy": (0.0, 1.001),
    "top5": (0.0, 1.001), "error": (0.0, 1.001), "map": (-1.001, 1.001), "map50": (-1.001, 1.001),
    "iou": (0.0, 1.001), "dice": (0.0, 1.001), "f1": (0.0, 1.001), "auc": (0.0, 1.001), "wer": (0.0, np.inf),
    "mse": (0.0, np.inf), "rmse": (0.0, np.inf), "mae": (0.0, np.inf), "correlation": (-np.inf, 1.001),
}  # fmt: skip


# dB: rounding to 8 bits alone leaves 10 log10(12 * 255^2); a super-resolved picture is never nearer to its target.
ROUNDING = 58.9


def look(judged: tuple[Series, ...], knobs: Knobs | None = None) -> Answer | list[Finding]:
    out = []
    scale = knobs.value("sr.scale") if knobs is not None else None
    enlarges = isinstance(scale, (int, float)) and scale >= 2
    for series in judged:
        if series.unit == "count":
            top = int(np.nanargmax(series.values))
            text = (
                f"{series.name} reaches {series.values[top]:.4g}, more than 100 %: it counts right answers (of a batch, or of the "
                f"set), or is divided by the wrong number; its course can be compared, its level cannot"
            )
            out.append(seen(ID, series, text, severity="watch", grade="is", onset=top, values=len(series)))
            continue
        bounds = BOUNDS.get(series.quantity or "")
        if bounds is None:
            continue
        if series.quantity == "error" and not SHARE.search(series.raw):
            continue  # "Mean LSD Error", "test error" of a regression: a distance
        if enlarges and series.quantity == "psnr":
            bounds = (bounds[0], ROUNDING)
        scale = 100.0 if series.unit == "%" else 1.0
        values = series.values / scale
        with np.errstate(invalid="ignore"):
            bad = (values < bounds[0]) | (values > bounds[1])
        if not bad.any():
            continue
        spots = np.flatnonzero(bad)
        first = int(spots[0])
        text = (
            f"{series.name} is {series.values[first]:.3g} at {where(series, first)}, which no {series.quantity} {'of an enlarged picture ' if bounds[1] == ROUNDING else ''}can be "
            f"({len(spots)} of {len(series)} values out of bounds)"
        )
        # One stray value is a glitch of one evaluation; a broken metric is broken often.
        often = len(spots) >= max(2, 0.2 * len(series)) and series.split != "train"
        out.append(
            seen(ID, series, text, severity="ill" if often else "watch", grade="is", onset=first, values=len(spots))
        )
    return out or Clear("every metric is within what its definition allows")


CASES = {
    "a distance": {"mean error": [75.9, 132.4, 92.6, 65.6], "expect": "clear"},
    "a share": {"val/class_error": [-0.2, 0.3, 0.2, 0.1], "expect": "finding"},
    "finding": {"val/fid": [1.2e57, 8.2e51, -3.1e68, -2.7e57]},
    "clear": {"val/fid": [300.0, 120.0, 60.0, 35.0]},
    "counts": {"val/accuracy": [190.0, 217.0, 205.0, 212.0], "expect": "watch"},
    "near miss": {"val/psnr": [11.5, 11.2, 11.1, 11.0], "expect": "clear"},
    "unknown": {},
}
