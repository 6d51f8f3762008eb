"""Length of the run against the length its schedule is laid out for.

## Definition
log2 of the planned updates over the horizon of the schedule (T_max, total steps, one-cycle length), both in updates.

## Derivation
A schedule is meant to end with the run. Longer: the rate is gone, or climbs again, before the end. Shorter: it never decays.

## Healthy band
−0.4 to 0.4.

## When it misleads
Horizons in epochs that are counted in steps by the framework.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.horizon import Horizon

ABOUT = "learning"
SETTING = True
EDGES = (-2.5, -0.4, 0.4, 1.5)
BAND = (-0.4, 0.4)


def observe(horizon: Horizon) -> Reading | Unknown:
    value = math.log2(horizon.run / horizon.schedule)
    text = (
        f"the run has {horizon.run:g} {horizon.unit}, its schedule is laid out for {horizon.schedule:g} ({horizon.key})"
    )
    return Reading(value, text, places=(horizon.place,))
