"""How clearly the score improved, in units of its own scatter.

## Definition
(first − best) / scatter of one value, for the held-out score, else the training loss.

## Derivation
An improvement of fewer than three scatters can be luck: the best of many noisy values lies two to three scatters below
their mean.

## Healthy band
Above 4.

## When it misleads
Few evaluations, whose scatter is not known well; a score at its ceiling from the start.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (1.0, 2.5, 4.0, 8.0, 20.0, 60.0)
BAND = (4.0, None)


def observe(main_curve: Curve) -> Reading | Unknown:
    if len(main_curve) < 6 or main_curve.noise <= 0:
        return Unknown("fewer than six values, or no scatter", ("more evaluations",))
    value = main_curve.gain / main_curve.noise
    text = f"{main_curve.series.name} improved by {value:.2g} times the scatter of one value"
    return Reading(value, text, series=main_curve.series.name, clock=main_curve.series.clock)
