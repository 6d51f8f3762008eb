"""How many successive evaluations give exactly the same number.

## Definition
Share of held-out values that equal the one before to the last digit.

## Derivation
Weights that change give scores that change. Equal ones mean weights that no longer move, an output that no longer depends on
the input, or an evaluation that looks at something else.

## Healthy band
Below 0.3.

## When it misleads
Scores at their ceiling, small held-out sets, few printed digits.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (0.1, 0.3, 0.7)
BAND = (None, 0.3)


def observe(held_out: Curve) -> Reading | Unknown:
    if len(held_out) < 6:
        return Unknown("fewer than six evaluations", ("more evaluations",))
    value = float(np.mean(np.diff(held_out.error) == 0))
    text = f"{value:.0%} of the evaluations of {held_out.series.name} equal the one before exactly"
    return Reading(value, text, series=held_out.series.name, clock=held_out.series.clock)
