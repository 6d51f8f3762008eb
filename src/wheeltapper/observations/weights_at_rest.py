"""Whether a logged norm of weights stays exactly what it was.

## Definition
The share of the logged norms of weights, adapters or heads that have one and the same value from the first row to the last,
among all that are logged.

## Derivation
Weights that an optimizer touches move in every update, and weight decay alone moves their norm. A norm that does not change in any
digit belongs to parameters that are frozen, not in the optimizer, or without a gradient.

## Healthy band
Below 0.01: none.

## When it misleads
Parts that are frozen on purpose and logged all the same; norms that are printed with two digits.
"""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run, Series

ABOUT = "learning"
EDGES = (0.01, 0.6)
BAND = (None, 0.01)
FEWEST = 5
DIGITS = 3  # at least: fewer may hide a movement
_NORM = re.compile(r"(?i)(^|[/_. ])(w|weights?|params?|parameters?)?_?norms?([/_. ]|$)|^\|\w+\|$")
_OTHER = re.compile(r"(?i)grad|loss|\|g\||feature|embed|act|input|batch|layer_?norm")


def observe(run: Run) -> Reading | Unknown:
    found = [s for s in run.series.values() if _is_norm(s)]
    if not found:
        return Unknown("no norm of weights is logged", ("norms of weights",))
    rest = [s for s in found if float(np.ptp(s.values[s.finite])) == 0.0 and _digits(s) >= DIGITS]
    share = len(rest) / len(found)
    if not rest:
        return Reading(share, f"all {len(found)} logged norms of weights move", series=found[0].name, clock=found[0].clock)
    s = rest[0]
    return Reading(share, f"{s.name} is {s.values[s.finite][0]:g} in all {len(s)} rows", series=s.name, clock=s.clock)


def _is_norm(s: Series) -> bool:
    named = s.quantity == "weight_norm" or (s.quantity is None and _NORM.search(s.raw) is not None)
    return named and not _OTHER.search(s.raw) and int(s.finite.sum()) >= FEWEST


def _digits(s: Series) -> int:
    value = float(s.values[s.finite][0])
    return DIGITS if value == 0 else len(f"{abs(value):.6g}".replace(".", "").strip("0"))
