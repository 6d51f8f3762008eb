"""The share of the run that was spent at a rate of almost nothing.

## Definition
Share of the run with a logged rate below 1 % of its peak, before the last twentieth.

## Derivation
Steps at a hundredth of the peak move the weights by nothing that matters: that share of the compute is wasted.

## Healthy band
Below 0.15.

## When it misleads
Long cool-downs on purpose, step schedules with many cuts.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.length import Rates

ABOUT = "efficiency"
EDGES = (0.05, 0.15, 0.35, 0.6)
BAND = (None, 0.15)


def observe(rates: Rates) -> Reading | Unknown:
    if not rates.logged or rates.series is None or len(rates.values) < 5:
        return Unknown("the rate is not logged", ("lr",))
    peak_spot = int(np.argmax(rates.values))
    low = np.interp(np.linspace(0, 0.95, 400), rates.share, rates.values) < 0.01 * rates.peak
    low &= np.linspace(0, 0.95, 400) > rates.share[peak_spot]
    value = float(low.mean())
    text = f"the rate is below 1 % of its peak ({rates.peak:.3g}) for {value:.0%} of the run"
    spots = np.flatnonzero((rates.values < 0.01 * rates.peak) & (np.arange(len(rates.values)) > peak_spot))
    onset = float(rates.series.at[min(int(spots[0]), len(rates.series) - 1)]) if len(spots) else None
    return Reading(value, text, series=rates.series.name, clock=rates.clock, onset=onset)
