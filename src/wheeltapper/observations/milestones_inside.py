"""Where the cuts of the rate lie within the run.

## Definition
Position of the last milestone over the length of the run, in the same unit; the sign is that of the earliest being inside.

## Derivation
Cuts beyond the end never happen; cuts that all lie in the first percents leave the rate at nothing for the rest.

## Healthy band
0.25 to 1.

## When it misleads
Units that the framework counts otherwise.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.horizon import Milestones

ABOUT = "learning"
SETTING = True
EDGES = (0.06, 0.25, 1.0, 1.5)
BAND = (0.25, 1.0)


def observe(milestones: Milestones) -> Reading | Unknown:
    inside = [m for m in milestones.at if m <= milestones.run]
    value = (max(inside) if inside else min(milestones.at)) / milestones.run
    text = f"of the cuts at {', '.join(f'{m:g}' for m in milestones.at[:4])}, {len(inside)} lie within the {milestones.run:g} {milestones.unit} of the run"
    return Reading(value, text, places=(milestones.place,))
