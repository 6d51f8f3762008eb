"""The highest logged rate against the one that was set.

## Definition
log2 of the largest logged learning rate over the configured one.

## Derivation
A schedule scales its rate between 0 and 1 of the one that was set. Above: multiplied for a world size or a batch that is not
there. Far below: the schedule never reached it.

## Healthy band
−0.2 to 0.2.

## When it misleads
Rates per reference batch, several parameter groups, schedules with a maximum of their own.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.length import Rates

ABOUT = "learning"
EDGES = (-6.0, -2.5, -1.0, -0.2, 0.2, 0.8, 1.8)
BAND = (-0.2, 0.2)


def observe(rates: Rates, knobs: Knobs) -> Reading | Unknown:
    declared = [k for name in ("schedule.max_lr", "optimizer.lr") if (k := knobs.get(name)) is not None and not k.default]
    told = number(declared[0].value) if declared else None
    if not rates.logged or rates.series is None or told is None or told <= 0:
        return Unknown("the rate is not both set and logged", ("lr in the log and in the config",))
    value = math.log2(max(rates.peak, 1e-300) / told)
    text = f"the rate was set to {told:.4g}; the largest that was logged is {rates.peak:.4g}"
    place = (knobs.place("optimizer.lr"),)
    return Reading(value, text, series=rates.series.name, clock=rates.clock, places=place)
