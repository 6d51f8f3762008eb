"""Whether the averaged model keeps its normalisation statistics up to date.

## Definition
1 where the settings say that buffers are not averaged, else 0.

## Derivation
An averaged network with the batch statistics of an untrained one gives nonsense.

## Healthy band
0.

## When it misleads
Networks without batch statistics.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.settings.knobs import Knobs

ABOUT = "evaluation"
SETTING = True
EDGES = (0.5,)
BAND = (None, 0.5)


def observe(knobs: Knobs) -> Reading | Unknown:
    value = knobs.value("ema.buffers")
    if not isinstance(value, bool):
        return Unknown("whether buffers are averaged is not set", ("the setting of the average's buffers",))
    return Reading(
        0.0 if value else 1.0,
        f"buffers are {'averaged too' if value else 'not averaged'}",
        places=(knobs.place("ema.buffers"),),
    )
