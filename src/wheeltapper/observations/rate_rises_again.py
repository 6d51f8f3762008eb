"""How far the rate climbs again after it had fallen.

## Definition
Largest rise of the logged rate after its peak, over the peak.

## Derivation
A cosine that runs past its end climbs back to the peak; a schedule that starts anew on resume jumps there. Only restarts by
plan do so on purpose.

## Healthy band
Below 0.1.

## When it misleads
Warm restarts, cyclic schedules, plans with several phases.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.reading.record import Floats
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.length import Rates

ABOUT = "learning"
EDGES = (0.02, 0.1, 0.5)
BAND = (None, 0.1)


def observe(rates: Rates, knobs: Knobs | None = None) -> Reading | Unknown:
    if not rates.logged or rates.series is None or len(rates.values) < 5:
        return Unknown("the rate is not logged", ("lr",))
    name = str(knobs.value("schedule.name") if knobs is not None else "").lower()
    if any(word in name for word in ("restart", "cyclic", "sgdr")):
        return Unknown("restarts of the rate are planned")
    if _cycles(rates.values):
        return Unknown("the rate rises again and again: cycles by plan")
    spot = int(np.argmax(rates.values >= 0.99 * rates.peak))
    tail = rates.values[spot:]
    rise = tail - np.minimum.accumulate(tail)
    at = spot + int(np.argmax(rise))
    value = float(rise.max()) / rates.peak
    text = f"after its peak the rate climbs again by {value:.0%} of it, to {rates.values[at]:.3g}"
    return Reading(
        value,
        text,
        series=rates.series.name,
        clock=rates.clock,
        onset=float(rates.series.at[min(at, len(rates.series) - 1)]),
    )


def _cycles(rate: Floats) -> bool:
    """Two or more rises from a low to nearly the peak: a schedule past its end or a resumed one rises once."""
    high, low, rises = 0.8 * float(rate.max()), 0.5 * float(rate.max()), 0
    down = False
    for value in rate[int(np.argmax(rate >= high)) :]:
        if value < low:
            down = True
        elif down and value > high:
            rises, down = rises + 1, False
    return rises >= 2
