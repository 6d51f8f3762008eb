"""The training loss rose for good: most of what had been learned is lost again.

## What it sees
A training loss whose level at the end lies far above its best level, or above where it began, and that
never came back.

## Why it matters
The optimizer left the region it had found. What is saved after the onset is worse than what was before.

## How it decides
Levels are block medians, so a single batch proves nothing. The fall from the best level is tested against
a flat series with the same noise and autocorrelation, corrected for having picked the best, at
p < 1e-3. It is a divergence when at least 30 % of the gain is lost again, or the end lies above the start.
The rise is at least 5 % of the loss itself.
30 %: on the healthy records of the corpus the largest loss of gain in a training loss is below 15 %
(LOG.md, 2026-11-16).

## When it is wrong
A curriculum, a growing resolution, a new loss term or a loss weight raise the loss by design; adversarial
and policy losses need not fall and are not looked at here. Where the log or the config announces such a
change, the finding is only suspected.

## References
- BigScience, lessons learned (bigscience-workshop/bigscience, train/lessons-learned.md).
- OPT-175B logbook (facebookresearch/metaseq, projects/OPT/chronicles).
- Our simulation of flat, autocorrelated noise: the best of 50 evaluations lies 2.2 sigma above the last
  at the median, 4.0 at the 95th percentile, and ten evaluations without a new best are seen in 99.9 % of
  flat series.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import fall_from_best

ID = "diverged"
LIVE = True
LOST = 0.30
LEAST = 0.05  # of the loss itself: a rise that nobody would see on the axis is no divergence
P = 1e-3


def look(train_loss: Series, shifting: str = "") -> Answer:
    x = train_loss.values
    fall = fall_from_best(x)
    if fall is None:
        return Unknown("fewer than four finite training losses", ("a training loss logged more often",))
    above_start = fall.last > fall.first + 3 * fall.sigma and fall.last > 1.05 * abs(fall.first)
    moved = fall.drop >= LEAST * max(abs(fall.first), abs(fall.best))
    if fall.p >= P or not moved or not (fall.share >= LOST or above_start):
        return Clear(f"the end lies {fall.drop:.3g} above the best level ({min(fall.share, 9.99):.0%} of the gain)")
    onset = fall.onset_index
    if fall.gain > 0 and not above_start:
        size = f"lost {min(fall.share, 9.99):.0%} of what it had gained"
    else:
        size = f"ends above its start ({fall.first:.4g})"
    peak = float(np.nanmax(x[onset:]))
    text = (
        f"{train_loss.name} rose from {fall.best:.4g} to {fall.last:.4g} since {where(train_loss, onset)}: {size}"
        + (f"; at worst {peak:.4g}" if peak > 1.5 * fall.last else "")
    )
    return seen(
        ID, train_loss, text + (f" ({shifting})" if shifting else ""),
        severity="watch" if shifting else "ill", grade="suspected" if shifting else "is-p", onset=onset, p=fall.p,
        best=fall.best, last=fall.last, first=fall.first, share=min(fall.share, 99.0),
    )  # fmt: skip


_down = [3.0 - 0.02 * i + 0.02 * ((i * 7) % 5) for i in range(60)]
CASES = {
    "finding": {"train/loss": [*_down, *[2.0 + 0.15 * i for i in range(30)]]},
    "clear": {"train/loss": _down},
    "near miss": {"train/loss": [*_down, *[v + 0.1 for v in _down[-20:]]], "expect": "clear"},
    "unknown": {"val/accuracy": [0.1, 0.2, 0.3, 0.4]},
}
