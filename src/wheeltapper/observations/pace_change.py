"""How the time per step changed.

## Definition
log2 of the time per step over the last part of the run against the first, where the middle lies between; 0 where it does
not. What the scatter of the rows explains is
taken off. A part is a tenth of a long record and a fourth of a short one; the first row, which holds the start, is left out.

## Derivation
The work of a step is the same throughout: a pace that falls steadily is a leak, a throttled machine, or a list that grows. A
shared machine goes up and down instead.

## Healthy band
Below 0.3.

## When it misleads
Growing batches or pictures by plan; shared machines.
"""

from __future__ import annotations

import math
import re

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run, Series
from wheeltapper.study.statistics import noise_of

ABOUT = "efficiency"
EDGES = (0.1, 0.3, 0.7)
BAND = (None, 0.3)
FEWEST = 8
LONG = 40
_TIME = re.compile(
    r"(?i)^(train[/_.])?(time|(batch|step|iter|epoch)_?time|time_ms|dt|elapsed.*per.*iter.*|time_per_iteration"
    r"|(ms|s|sec|secs|seconds)[ _/]?(per)?[ _/]?(upd|update|step|it|iter|iteration|batch|epoch)s?)$"
)


def observe(run: Run) -> Reading | Unknown:
    found = [s for s in run.series.values() if _tells(s)]
    if not found:
        return Unknown("neither step time nor throughput is logged", ("time per step",))
    pace = max(found, key=lambda s: (len(s), s.quantity == "throughput"))
    x = pace.values[pace.finite & (pace.values > 0)][1:]
    k = max(2, len(x) // (10 if len(x) >= LONG else 4))
    half = len(x) // 2
    early, middle, late = (float(np.median(part)) for part in (x[:k], x[half - k // 2 : half + k // 2 + 1], x[-k:]))
    value, second = (math.log2(late / since) * (-1.0 if pace.quantity == "throughput" else 1.0) for since in (early, middle))
    if abs(value) > 2.0 * abs(second):  # most of it happened early: another phase of the work began (a replay buffer was full)
        value = 2.0 * second
    luck = 2.0 * noise_of(np.log2(x)).sigma * math.sqrt(2.0 / k)  # what two medians of k noisy rows differ by
    value = math.copysign(max(0.0, abs(value) - luck), value)
    steady = min(early, late) <= middle <= max(early, late)
    text = f"{pace.name} went from {early:.3g} over {middle:.3g} to {late:.3g}"
    return Reading(value if steady else 0.0, text, series=pace.name, clock=pace.clock, onset=float(pace.at[0]))


def _tells(s: Series) -> bool:
    if s.split not in (None, "train") or int((s.finite & (s.values > 0)).sum()) <= FEWEST:
        return False
    return s.quantity == "throughput" or (s.quantity in (None, "duration") and bool(_TIME.match(s.raw.strip())))
