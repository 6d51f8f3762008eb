"""The validation loss rose when the rate reached its peak, and came down only with the rate.

## What it sees
A validation loss that had improved during the warm-up, lay clearly above that level while the rate was high, and
passed it again only as the rate fell.

## Why it matters
What the warm-up had gained was thrown away at the peak; the run ends by learning again, at a low rate, what it knew
before, and seems to improve all along. It ends well short of what a lower peak gives.

## How it decides
Level: a median of three evaluations. Reference: the lowest level up to the evaluation at which the rate has come to 95 % of its
highest, two evaluations at least. Counted are later evaluations more than five noise deviations and one percent above the reference. The rate must rise to its peak
and fall to less than half of it, and the loss must end below the reference: else it is another sign's matter. Half of the
evaluations: ill; a quarter: a watch.

## When it is wrong
A run that goes on from trained weights with a new warm-up loses at first what it gains later, on purpose. A curriculum
whose validation becomes harder with time.

## References
- Ibrahim et al. 2024, Simple and Scalable Strategies to Continually Pre-train Large Language Models
  (arXiv:2403.08763): what rewarming costs and when it is made good.
- Gilmer et al. 2021, A Loss Curvature Perspective on Training Instability (arXiv:2110.04369): warm-up and the peak.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import noise_of, running_median

ID = "lost-at-the-peak"
LIVE = False
SIGMAS = 5.0
LEAST = 0.01  # of the level: a curve without noise has bumps of no weight
WATCH, ILL = 0.25, 0.5  # of the evaluations; 0 in 300 healthy lab runs, at most 0.26 in 86 public logs with both curves (LOG.md)


def look(val_loss: Series, lr: Series) -> Answer:
    x, at = val_loss.values[val_loss.finite], val_loss.at[val_loss.finite]
    rates = lr.values[lr.finite]
    if len(x) < 12 or lr.clock != val_loss.clock or len(rates) < 3:
        return Unknown("too few evaluations beside the learning rate", ("a validation loss and lr on one clock",))
    top = int(np.argmax(rates >= 0.95 * rates.max()))
    if not rates[0] < 0.5 * rates.max() > rates[-1]:
        return Clear("the rate has no peak between its first and its last value")
    level, noise = running_median(x, 3), noise_of(x).sigma
    after = max(2, int(np.searchsorted(at, lr.at[lr.finite][top])))
    if len(x) - after < 8:
        return Clear("the rate reaches its peak near the end")
    reference = float(level[:after].min())
    above = level[after:] > reference + max(SIGMAS * noise, LEAST * abs(reference))
    if not above.any() or float(level[-3:].min()) >= reference:
        return Clear("the validation loss does not rise with the rate and come down again")
    part, worst = float(above.mean()), after + int(np.argmax(level[after:]))
    if part < WATCH or above[-3:].any():
        return Clear(f"{part:.0%} of the evaluations lie above {reference:.4g}, the level of the warm-up")
    index = int(np.flatnonzero(val_loss.finite)[after + int(np.argmax(above))])
    text = (
        f"{val_loss.name} had come to {reference:.4g} when the rate reached its peak of {rates.max():.3g}, rose to {level[worst]:.4g} at "
        f"{where(val_loss, int(np.flatnonzero(val_loss.finite)[worst]))} and lay above for {part:.0%} of the later evaluations: it ends at {level[-1]:.4g}"
    )
    return seen(
        ID, val_loss, text, severity="ill" if part >= ILL else "watch", grade="is-p", p=3e-7, onset=index, share=part, peak=float(rates.max())
    )


_RATE = [0.02 * min(t / 6, 1.0, (40 - t) / 25) for t in range(40)]
_EARLY = [3.0, 2.8, 2.6, 2.45, 2.35, 2.3]
CASES = {
    "finding": {
        "val/loss": [*_EARLY, *(2.7 + 0.005 * (t % 2) for t in range(22)), *(2.5 - 0.03 * t for t in range(12))],
        "lr": _RATE,
        "expect": "ill",
    },
    "clear": {"val/loss": [3.0 - 0.03 * t + 0.005 * (t % 2) for t in range(40)], "lr": _RATE},
    "a bump": {
        "val/loss": [*_EARLY, *([2.4] * 4), *(2.25 - 0.01 * t for t in range(30))],
        "lr": _RATE,
        "expect": "clear",
    },
    "a constant rate": {
        "val/loss": [*_EARLY, *([2.7] * 22), *(2.5 - 0.03 * t for t in range(12))],
        "lr": [0.02] * 40,
        "expect": "clear",
    },
    "unknown": {"val/loss": [3.0, 2.0], "lr": [0.1, 0.1]},
}
