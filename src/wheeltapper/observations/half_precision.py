"""How much of the training is in half precision.

## Definition
0: single precision or bfloat16. 1: mixed with a loss scaler. 2: weights and optimizer in half precision.

## Derivation
Adam's epsilon of 1e-8 is zero in fp16, and updates below a thousandth of a weight are lost.

## Healthy band
Below 2.

## When it misleads
Frameworks that keep a master copy by themselves.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (0.5, 1.5)
BAND = (None, 1.5)


def observe(knobs: Knobs) -> Reading | Unknown:
    name = str(knobs.value("precision") or "").lower()
    if not name:
        return Unknown("the precision is not set", ("precision",))
    half = ("16" in name and "bf" not in name) or name == "half"
    mixed = "mixed" in name or knobs.value("amp.enabled") is True or knobs.value("amp.scaler") is True
    pure = half and not mixed and ("true" in name or "pure" in name or knobs.value("amp.enabled") is False)
    value = 2.0 if pure else 1.0 if half else 0.0
    return Reading(value, f"the precision is {name}", places=(knobs.place("precision"),))
