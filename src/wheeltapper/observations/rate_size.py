"""The peak rate against what its optimizer is run with.

## Definition
log10 of the peak rate over the middle of practice: 1e-3 for optimizers whose step does not depend on the gradient's size (Adam
and kin), 0.1 for SGD with momentum.

## Derivation
A step of Adam moves every weight by about the rate, so the rate is judged against the weights' own size, 1e-2 to 1e-1.
Weights that were trained before stand ten times less; adapters begin at zero and stand as much as fresh ones.

## Healthy band
−3 to 0.8.

## When it misleads
Scale-invariant networks; small networks, which stand more.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.length import Rates

ABOUT = "learning"
SETTING = True
EDGES = (-4.0, -3.0, 0.8, 1.3, 2.0)
BAND = (-3.0, 0.8)


def observe(rates: Rates, scale_free: bool, from_scratch: bool, knobs: Knobs) -> Reading | Unknown:
    middle = 1e-3 if scale_free else 0.1
    adapters = knobs.get("model.lora_rank") is not None or knobs.get("lora.alpha") is not None
    value = math.log10(rates.peak / middle) + (0.0 if from_scratch or adapters else 1.0)
    kind = "Adam and its kin" if scale_free else "SGD"
    text = f"the peak rate is {rates.peak:.3g}; {kind} are usually run with about {middle:g}"
    return Reading(value, text, series=rates.series.name if rates.series is not None else None, clock=rates.clock)
