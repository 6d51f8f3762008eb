"""The loss of the discriminator against that of a draw.

## Definition
log2 of the last discriminator loss over 2 ln 2 (ln 2 where it never exceeded 1).

## Derivation
A discriminator that cannot tell real from made has a loss of ln 2 on each. Near zero it has won, and the generator learns nothing.

## Healthy band
−2.5 to 1.

## When it misleads
Hinge and Wasserstein losses have other levels.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run

ABOUT = "learning"
EDGES = (-5.0, -2.5, 1.0)
BAND = (-2.5, 1.0)


def observe(run: Run) -> Reading | Unknown:
    found = [s for s in run.series.values() if s.quantity == "gan_d" and int(s.finite.sum()) >= 5]
    if not found:
        return Unknown("no loss of a discriminator is logged", ("d_loss",))
    s = max(found, key=lambda s: (not s.part, len(s)))
    x = s.values[s.finite]
    if float(np.min(x)) < 0:
        return Unknown("the discriminator's loss goes below zero: no cross-entropy")
    level = float(np.median(x[-max(3, len(x) // 5) :]))
    draw = 2 * math.log(2) if float(np.max(x)) > 1 else math.log(2)
    return Reading(
        math.log2(max(level, 1e-6) / draw),
        f"{s.name} ends at {level:.3g}; a draw is {draw:.3g}",
        series=s.name,
        clock=s.clock,
    )
