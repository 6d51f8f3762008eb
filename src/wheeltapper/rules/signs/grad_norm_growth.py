"""The gradient norm keeps growing.

## What it sees
A gradient norm whose level at the end lies several times above its lowest level, and grew on the way.

## Why it matters
Norms that grow for long often come before a divergence. They also grow in sound runs, where the learning rate
decays or the weights shrink, so this alone proves nothing.

## How it decides
The logarithm of the norm, as block medians, without the first tenth, where it settles; the rise from its
lowest level is tested against a flat series with the same noise and autocorrelation, corrected for having
picked the lowest, at p < 1e-3. A note from a factor of 3 on, a watch from 10 on while the learning
rate did not decay. On the labelled healthy records the norm ends at 1.5 times its lowest level at most
(LOG.md, 2026-11-16). If the norm follows the loss scale, it was logged before unscaling, and the answer is
Unknown.

## When it is wrong
Norms of growing batches of work (sequence length, loss summed over tokens), a loss scale that is not logged.

## References
- BigScience 176B chronicles (bigscience-workshop/bigscience, train/tr11-176B-ml).
- BigScience 104B chronicles (bigscience-workshop/bigscience, train/tr8-104B-wide).
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import block_medians, fall_from_best, slope_p

ID = "grad-norm-growth"
LIVE = True
ROWS, NOTE, WATCH, P = 50, 3.0, 10.0, 1e-3


def look(grad_norm: Series, lr: Series | None = None, loss_scale: Series | None = None) -> Answer:
    good = np.flatnonzero(grad_norm.finite & (grad_norm.values > 0))
    if len(good) < ROWS:
        return Unknown(f"fewer than {ROWS} positive gradient norms", ("grad_norm logged more often",))
    spots, x = block_medians(np.log(grad_norm.values[good]), 200)
    spots, x = spots[len(x) // 10 :], x[len(x) // 10 :]
    if loss_scale is not None and _follows(grad_norm, loss_scale):
        return Unknown(
            "the gradient norm follows the loss scale: it was logged before unscaling", ("unscaled grad_norm",)
        )
    fall = fall_from_best(x)
    if fall is None:
        return Unknown("too few gradient norms", ("grad_norm logged more often",))
    factor = float(np.exp(min(fall.drop, 50.0)))
    slope, p_slope = slope_p(spots[fall.best_index :], x[fall.best_index :])
    if factor < NOTE or fall.p >= P or slope <= 0 or p_slope >= P:
        return Clear(f"the gradient norm ends at {factor:.3g} times its lowest level")
    index = int(good[min(round(float(spots[fall.best_index])), len(good) - 1)])
    decayed = _decayed(lr)
    text = f"{grad_norm.name} grew {factor:.3g}x since {where(grad_norm, index)}, from {np.exp(fall.best):.3g} to {np.exp(fall.last):.3g}"
    if decayed:
        text += f", while the learning rate fell to {decayed:.0%} of its peak (often so in sound runs)"
    watch = factor >= WATCH and not decayed
    return seen(
        ID, grad_norm, text, severity="watch" if watch else "note", grade="is-p", onset=index, p=max(fall.p, p_slope),
        factor=factor,
    )  # fmt: skip


def _decayed(lr: Series | None) -> float | None:
    """The share of its peak that the learning rate has left, if it fell below half."""
    if lr is None:
        return None
    values = lr.values[lr.finite]
    left = float(values[-1] / values.max()) if len(values) and values.max() > 0 else 1.0
    return left if left < 0.5 else None


def _follows(norm: Series, scale: Series) -> bool:
    """log norm against log scale has a slope near one, where the scale moved at least fourfold."""
    at = scale.on(norm.clock)
    good = scale.finite & (scale.values > 0)
    if at is None or good.sum() < 5:
        return False
    use = np.flatnonzero(norm.finite & (norm.values > 0))
    use = use[:: 1 + len(use) // 10_000]
    spot = np.clip(np.searchsorted(at[good], norm.at[use], side="right") - 1, 0, int(good.sum()) - 1)
    s, y = np.log2(scale.values[good][spot]), np.log2(norm.values[use])
    if np.ptp(s) < 2:
        return False
    slope = float(np.dot(s - s.mean(), y - y.mean()) / np.dot(s - s.mean(), s - s.mean()))
    return 0.7 < slope < 1.3 and float(np.corrcoef(s, y)[0, 1]) > 0.7


_noise = [0.1 * ((i * 7) % 5) for i in range(300)]
CASES = {
    "finding": {"grad_norm": [0.5 * 1.02 ** max(i - 60, 0) * (1 + _noise[i]) for i in range(300)]},
    "clear": {"grad_norm": [2.0 * 0.99**i + 0.5 + _noise[i] for i in range(300)]},
    "near miss": {
        "grad_norm": [0.2 * 2 ** (i // 50) * (1 + 0.1 * _noise[i]) for i in range(300)],
        "loss_scale": [65536.0 * 2 ** (i // 50) for i in range(300)],
        "expect": "unknown",
    },
    "unknown": {"train/loss": [1.0, 0.9]},
}
