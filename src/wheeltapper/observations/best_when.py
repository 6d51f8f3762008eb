"""When the held-out score was best, as a share of the run.

## Definition
Position of the best held-out level over the length of the record.

## Derivation
A run that still learns is best near its end. Best at the very beginning means that training made it worse.

## Healthy band
Above 0.3.

## When it misleads
A score that saturates early and then wanders within its noise; fine-tuning.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
NEEDED = True
LIVE = False
EDGES = (0.08, 0.2, 0.3, 0.6)
BAND = (0.3, None)


def observe(held_out: Curve) -> Reading | Unknown:
    if len(held_out) < 6:
        return Unknown("fewer than six evaluations", ("more evaluations",))
    near = held_out.smooth <= held_out.best + max(held_out.noise, 0.01 * held_out.gain)
    spot = int(np.flatnonzero(near)[-1])
    value = float(held_out.share[spot])
    text = f"{held_out.series.name} was last as good as its best at {value:.0%} of the run"
    return Reading(value, text, series=held_out.series.name, clock=held_out.series.clock, onset=held_out.at(spot))
