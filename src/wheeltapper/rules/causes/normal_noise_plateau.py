"""No new best for a while is expected on a flat, noisy curve.

## What happens
The best of many noisy values lies above their mean. On a flat curve of 50 evaluations ten in a row without a new
best are the rule, not the exception.

## How it shows
The last evaluations lie below the best one by about the noise, and patience rules call it overfitting.

## What else looks like this
A real decline: it exceeds what noise and selection explain, and has its own sign.

## When this is wrong
The level itself falls.

## Fix
Nothing to mend. Choose the checkpoint by a smoothed score, or evaluate the best few again.

## Trial
Evaluate the best and the last checkpoint on other items: equal within noise decides.

## References
- Our simulation of flat, autocorrelated noise: the best of 50 evaluations lies 2.2 sigma above the last
  at the median, 4.0 at the 95th percentile, and ten evaluations without a new best are seen in 99.9 % of
  flat series.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import badness, fall_from_best

ID = "normal-noise-plateau"
AREA = "evaluation"
NORMAL = True
WAIT = 5  # evaluations without a new best: fewer trouble nobody
P = 0.05


def expect(case: Case) -> str:
    metric: Series | None = case.get("main_metric")
    if metric is None or metric.quantity in ("return", "success"):
        return ""
    if case.found("at-chance", "never-left-zero", "below-baseline", "impossible-value", severity="ill"):
        return ""  # there the level itself is the trouble
    if any(f.series == metric.name for f in case.found("declined-after-peak", "collapsed", "constant-metric")):
        return ""
    x = badness(metric.values[metric.finite], metric.better)
    fall = fall_from_best(x)
    if fall is None or len(x) < 2 * WAIT or fall.p < P or fall.gain < 3 * fall.sigma:
        return ""
    since = len(x) - 1 - int(np.argmin(x))
    if since < WAIT:
        return ""
    chance = "p > 0.5" if fall.p > 0.5 else f"p = {fall.p:.2f}"
    return (
        f"no new best of {metric.name} in {since} evaluations is expected: the best of {len(x)} noisy values stands above "
        f"their level, and the end lies within what noise and that choice explain ({chance})"
    )
