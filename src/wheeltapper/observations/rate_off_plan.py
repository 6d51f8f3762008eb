"""How far the logged rate lies from the planned one.

## Definition
Median of |log2| of logged over planned rate over the run, where both are above a thousandth of the peak.

## Derivation
The plan follows from the settings exactly; what differs was stepped in another unit, restarted, or never read.

## Healthy band
Below 0.15.

## When it misleads
Schedules of one's own that share a name with a known one.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.length import Rates

ABOUT = "learning"
EDGES = (0.02, 0.15, 0.6, 2.0)
BAND = (None, 0.15)


def observe(rates: Rates, shape_plan: tuple[np.ndarray, np.ndarray]) -> Reading | Unknown:
    if not rates.logged or rates.series is None:
        return Unknown("the rate is not logged", ("lr",))
    share, plan = shape_plan
    planned = np.interp(rates.share, share, plan)
    keep = (np.maximum(planned, rates.values) > 1e-3 * max(rates.peak, float(plan.max()))) & (rates.share > 0.01)
    if keep.sum() < 5:
        return Unknown("too few logged rates to compare", ("lr at more steps",))
    ratio = np.log2(np.maximum(rates.values[keep], 1e-12 * rates.peak) / np.maximum(planned[keep], 1e-12 * rates.peak))
    value = float(np.median(np.abs(np.clip(ratio, -20, 20))))
    worst = int(np.flatnonzero(keep)[int(np.argmax(np.abs(ratio)))])
    text = f"at {rates.share[worst]:.0%} of the run the rate is {rates.values[worst]:.3g}; the settings plan {planned[worst]:.3g}"
    return Reading(
        value,
        text,
        series=rates.series.name,
        clock=rates.clock,
        onset=float(rates.series.at[min(worst, len(rates.series) - 1)]),
    )
