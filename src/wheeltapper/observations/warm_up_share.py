"""The share of the run that had passed when the rate reached its peak.

## Definition
Position of the first logged rate within 1 % of the peak, over the length of the run; 0 where it starts there, or falls from the first row on (a
later peak is that of a restart).

## Derivation
Until the peak is reached the run trains slower than was meant.

## Healthy band
Below 0.35 (one-cycle schedules rise for 0.3).

## When it misleads
Records that stop early; cyclic schedules.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.length import Length, Rates

ABOUT = "learning"
LIVE = False
EDGES = (0.002, 0.12, 0.35, 0.6, 0.9)
BAND = (None, 0.35)


def observe(rates: Rates, length: Length) -> Reading | Unknown:
    if not rates.logged or rates.series is None or len(rates.values) < 5:
        return Unknown("the rate is not logged", ("lr",))
    value = 0.0 if rates.first >= 0.99 * rates.peak or rates.values[1] < rates.first else rates.peak_at
    if length.done and length.planned and length.done < 0.7 * length.planned:
        value *= length.done / length.planned
    text = f"the rate reaches its peak, {rates.peak:.3g}, at {value:.0%} of the run"
    return Reading(value, text, series=rates.series.name, clock=rates.clock)
