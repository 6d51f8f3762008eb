"""How often the run was started.

## Definition
Number of launches after the first.

## Derivation
What is lost between launches (optimizer state, schedule, averages) can only be lost where there are several.

## Healthy band
Any: it only makes some causes possible.

## When it misleads
It speaks only together with other numbers.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run

ABOUT = "learning"
SETTING = True
EDGES = (0.5, 1.5)
BAND = (None, None)


def observe(run: Run) -> Reading | Unknown:
    if not run.series:
        return Unknown("nothing is logged", ("a log",))
    own = [segment for segment in run.segments if not segment.beside]
    resumed = any(e.kind == "resume" for e in run.events)
    value = float(max(len(own) - 1, int(resumed), 0))
    return Reading(value, f"the run was launched {value + 1:g} times")
