"""How much of the returns the value function explains.

## Definition
Last level of the explained variance.

## Derivation
1 is perfect, 0 no better than a constant, below 0 worse.

## Healthy band
Above 0.1.

## When it misleads
Returns that hardly vary.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run

ABOUT = "learning"
EDGES = (-0.2, 0.1, 0.5)
BAND = (0.1, None)


def observe(run: Run) -> Reading | Unknown:
    found = [s for s in run.series.values() if "explained" in s.raw.lower() and int(s.finite.sum()) >= 5]
    if not found:
        return Unknown("the explained variance is not logged", ("explained variance",))
    x = found[0].values[found[0].finite]
    level = float(np.median(x[-max(1, len(x) // 5) :]))
    return Reading(
        level, f"the value function explains {level:.2f} of the variance of the returns", series=found[0].name
    )
