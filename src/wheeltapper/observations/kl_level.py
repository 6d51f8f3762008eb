"""How much information the latent code keeps, in nats.

## Definition
log10 of the last level of the KL divergence of a variational model.

## Derivation
The KL is the information that the code carries. Below a tenth of a nat it carries none: posterior collapse.

## Healthy band
Above −0.3 (half a nat).

## When it misleads
KL per dimension or per pixel instead of the sum; KL of a policy, which should be small.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run
from wheeltapper.study.curves import Task

ABOUT = "learning"
EDGES = (-1.5, -0.3, 0.3)
BAND = (-0.3, None)


def observe(run: Run, task: Task) -> Reading | Unknown:
    found = [s for s in run.series.values() if s.quantity == "kl" and int(s.finite.sum()) >= 3]
    if not found or task.reinforcement or any("reward" in s.raw.lower() for s in run.series.values()):
        return Unknown("no KL of a variational model is logged", ("the KL term",))
    s = max(found, key=lambda s: (not s.part, s.split == "val", len(s)))
    x = s.values[s.finite]
    level = float(np.median(x[-max(1, len(x) // 10) :]))
    return Reading(math.log10(max(level, 1e-6)), f"{s.name} ends at {level:.3g} nats", series=s.name, clock=s.clock)
