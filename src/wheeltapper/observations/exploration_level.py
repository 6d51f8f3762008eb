"""How random the agent still acts at the end.

## Definition
The share of random actions (epsilon) over the last tenth of the record.

## Derivation
Epsilon is the probability of an action that the policy did not choose. While it stays near 1 the returns are those of a random
policy, whatever was learned.

## Healthy band
Below 0.3.

## When it misleads
Records that stop early; agents that explore on purpose in training and are evaluated without.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run
from wheeltapper.study.curves import Task

ABOUT = "learning"
LIVE = False
EDGES = (0.3, 0.6, 0.9)
BAND = (None, 0.3)
FEWEST = 5


def observe(run: Run, task: Task) -> Reading | Unknown:
    if not task.reinforcement:
        return Unknown("no agent is trained")
    found = [s for s in run.series.values() if s.quantity == "exploration" and int(s.finite.sum()) >= FEWEST]
    if not found:
        return Unknown("the share of random actions is not logged", ("epsilon",))
    s = max(found, key=len)
    x = s.values[s.finite]
    level = float(np.median(x[-max(1, len(x) // 10) :]))
    if not 0 <= level <= 1:
        return Unknown("the exploration is not logged as a share")
    return Reading(level, f"{s.name} ends at {level:.3g}", series=s.name, clock=s.clock)
