"""How far a setting lies beyond its working range.

## Definition
The farthest setting, counted in steps from the end of its usual range to where it stops to make sense, on a logarithmic scale: 0
inside, 1 at the end of sense.

## Derivation
Each range follows from what the setting does: a dropout of 0.8 leaves a fifth of a layer, a discount of 0.5 sees two steps
ahead, an epsilon of 1 is larger than any second moment (`settings/ranges.py` has the reason of each).

## Healthy band
Below 0.3.

## When it misleads
Tiny models and made tasks can be trained far outside; a rare setting alone never makes a run ill.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.settings.knobs import Knobs
from wheeltapper.settings.ranges import Beyond

ABOUT = "learning"
SETTING = True
EDGES = (0.3, 1.0)
BAND = (None, 0.3)


def observe(knobs: Knobs, out_of_range: tuple[Beyond, ...]) -> Reading | Unknown:
    if not len(knobs):
        return Unknown("no setting is known", ("the settings",))
    if not out_of_range:
        return Reading(0.0, "every setting lies within its usual range")
    farthest = out_of_range[0]
    place = knobs.place(farthest.range.knob)
    return Reading(farthest.steps, farthest.sentence(), places=(place,) if place.file else ())
