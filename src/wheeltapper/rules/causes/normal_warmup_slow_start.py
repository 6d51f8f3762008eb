"""Little progress during the warm-up is expected.

## What happens
While the rate climbs from almost nothing, the model hardly moves; classifiers of many classes stay at chance.

## How it shows
The score is flat until the warm-up is nearly over and rises afterwards.

## What else looks like this
A rate that is too low for good: the score stays flat after the warm-up as well.

## When this is wrong
The warm-up is over and nothing moves.

## Fix
Nothing to mend.

## Trial
None needed.

## References
- Ma and Yarats 2019, On the adequacy of untuned warmup for adaptive optimization (arXiv:1910.04209).
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import badness

ID = "normal-warmup-slow-start"
AREA = "learning rate"
NORMAL = True
LITTLE = 0.1  # of what was won in all


def expect(case: Case) -> str:
    shape, lr = case.get("lr_shape"), case.get("lr")
    metric: Series | None = case.get("main_metric")
    if shape is None or lr is None or metric is None or shape.warmup_end is None:
        return ""
    at = metric.on(lr.clock)
    if at is None or int(metric.finite.sum()) < 8:
        return ""
    x, spots = badness(metric.values[metric.finite], metric.better), at[metric.finite]
    half = spots <= shape.warmup_end / 2
    gain = float(x[0] - np.median(x[-3:]))
    if int(half.sum()) < 3 or gain <= 0 or x[0] - float(np.median(x[half][-3:])) > LITTLE * gain:
        return ""
    return (
        f"the slow start of {metric.name} is expected: the learning rate warms up until {lr.clock} {shape.warmup_end:g}"
    )
