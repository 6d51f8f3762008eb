"""A curve in a few characters. The highest and the lowest point always show; NaN and inf are a cross."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

BLOCKS = "▁▂▃▄▅▆▇█"
NOT_FINITE = "×"
# A loss that falls from 10 to 0.01 is a flat line on a linear scale: above this ratio the scale is
# logarithmic. 50: a drop to the last of the 8 blocks' 1/8 and again to 1/8 of that must still be seen.
LOG_ABOVE = 50.0


def wants_log(values: np.ndarray[Any, Any]) -> bool:
    """Whether finite `values` are all positive and span a ratio that a linear scale would hide."""
    return bool(values.size and values.min() > 0 and values.max() / LOG_ABOVE > values.min())


def spark(values: np.ndarray[Any, Any], width: int = 24, *, beside: np.ndarray[Any, Any] | None = None) -> str:
    """The values in at most `width` characters; `beside` are values of another curve that shares the scale.

    >>> spark(np.array([1.0, 2.0, 3.0, float("nan"), 8.0]))
    '▁▂▃×█'
    """
    n = len(values)
    if n == 0 or width < 1:
        return ""
    finite = np.isfinite(values)
    good = values[finite]
    if beside is not None:
        good = np.concatenate([good, beside[np.isfinite(beside)]])
    if not finite.any():
        return NOT_FINITE * min(n, width)
    drawn = values
    if wants_log(good):
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = np.log(values)
        good = np.log(good)
    # Scaled to [-1, 1] first: a diverged run holds values near the largest float, whose sums overflow.
    scale = max(float(np.abs(good).max()), np.finfo(float).tiny)
    with np.errstate(invalid="ignore"):
        drawn = drawn / scale
    good = good / scale
    low, high = float(good.min()), float(good.max())
    cells = min(n, width)
    edges = np.linspace(0, n, cells + 1).round().astype(int)
    out = []
    for start, stop in pairwise(edges):
        part, ok = drawn[start:stop], finite[start:stop]
        if not ok.all():
            out.append(NOT_FINITE)
            continue
        top, bottom = float(part.max()), float(part.min())
        level = top if top == high else bottom if bottom == low else float(part.mean())
        share = (level - low) / (high - low) if high > low else 0.5
        out.append(BLOCKS[min(7, max(0, int(share * 8)))])
    return "".join(out)
