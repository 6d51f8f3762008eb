"""The last rate against the peak.

## Definition
Last logged rate over the largest.

## Derivation
Most recipes end at a tenth or less. A run that ends at its peak was cut short, never decayed, or decays by plan only later.

## Healthy band
Any: it speaks only together with other numbers.

## When it misleads
Constant rates on purpose.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.length import Rates

ABOUT = "learning"
LIVE = False
EDGES = (0.5, 0.95)
BAND = (None, None)


def observe(rates: Rates) -> Reading | Unknown:
    if not rates.logged or rates.series is None:
        return Unknown("the rate is not logged", ("lr",))
    value = rates.last / rates.peak
    text = f"the rate ends at {rates.last:.3g}, {value:.0%} of its peak"
    return Reading(value, text, series=rates.series.name, clock=rates.clock)
