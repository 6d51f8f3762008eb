"""A warm-up that was set and did not happen.

## Definition
First logged rate over the peak, where a warm-up is set and the first rows lie inside it; as planned it is small.

## Derivation
Inside a warm-up the rate is a fraction of its peak. At its peak there, the setting was not read.

## Healthy band
Below 0.5.

## When it misleads
Logs that show the rate set and not the one in use.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.horizon import WarmUp
from wheeltapper.study.length import Rates

ABOUT = "learning"
EDGES = (0.5, 0.95)
BAND = (None, 0.5)


def observe(warm_up: WarmUp, rates: Rates) -> Reading | Unknown:
    inside = rates.share * warm_up.run < 0.5 * warm_up.updates
    if not rates.logged or rates.series is None or warm_up.updates < 2 or not inside.any():
        return Unknown("no logged rate lies inside a warm-up", ("lr of the first steps",))
    value = float(np.median(rates.values[inside])) / rates.peak
    text = f"a warm-up of {warm_up.updates:g} updates is set; inside it the rate is already at {value:.0%} of its peak"
    return Reading(
        value,
        text,
        series=rates.series.name,
        clock=rates.clock,
        onset=float(rates.series.at[0]),
        places=(warm_up.place,),
    )
