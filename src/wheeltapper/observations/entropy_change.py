"""How the entropy of a policy changed.

## Definition
log2 of the last entropy over the first, by size.

## Derivation
Entropy is exploration. Gone within the first part of training, the policy repeats itself before it has learned.

## Healthy band
Above −4.

## When it misleads
Tasks that a deterministic policy solves.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run
from wheeltapper.study.curves import Task

ABOUT = "learning"
EDGES = (-6.0, -4.0, -0.1, 0.5)
BAND = (-4.0, None)


def observe(run: Run, task: Task) -> Reading | Unknown:
    found = [s for s in run.series.values() if s.quantity == "entropy" and int(s.finite.sum()) >= 5]
    if not task.reinforcement or not found:
        return Unknown("no entropy of a policy is logged", ("entropy",))
    x = np.abs(max(found, key=len).values[max(found, key=len).finite])
    k = max(1, len(x) // 10)
    early, late = float(np.median(x[:k])), float(np.median(x[-k:]))
    return Reading(
        math.log2(max(late, 1e-6) / max(early, 1e-6)),
        f"the entropy went from {early:.3g} to {late:.3g}",
        series=max(found, key=len).name,
    )
