"""How often the chosen answer is preferred to the rejected one.

## Definition
Last level of the reward accuracy (or, without one, the sign of the margin).

## Derivation
0.5 is a coin. Below it the model learns the opposite of what was chosen.

## Healthy band
Above 0.55.

## When it misleads
Very few steps.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run, Series

ABOUT = "learning"
EDGES = (0.4, 0.55, 0.98)
BAND = (0.55, None)


def observe(run: Run) -> Reading | Unknown:
    def named(*words: str) -> list[Series]:
        return [s for s in run.series.values() if all(w in s.raw.lower() for w in words) and int(s.finite.sum()) >= 3]

    found = named("reward", "accurac") or named("pref", "acc")
    if found:
        s = max(found, key=lambda s: (s.split == "val", len(s)))
        x = s.values[s.finite]
        level = float(np.median(x[-max(1, len(x) // 5) :])) / (100.0 if float(np.max(x)) > 1.5 else 1.0)
        return Reading(level, f"{s.raw} ends at {level:.3g}", series=s.name, clock=s.clock)
    margins = named("margin")
    if margins:
        x = margins[0].values[margins[0].finite]
        level = float(np.median(x[-max(1, len(x) // 5) :]))
        return Reading(0.8 if level > 0 else 0.2, f"{margins[0].raw} ends at {level:.3g}", series=margins[0].name)
    return Unknown("no accuracy of preferences is logged", ("rewards/accuracies",))
