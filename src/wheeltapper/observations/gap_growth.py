"""How the gap between held-out and training loss grew.

## Definition
The gap at the end minus the gap at the first evaluation, in halvings.

## Derivation
A constant gap is a difference of data or of evaluation; a gap that grows is learning by heart.

## Healthy band
Below 0.6.

## When it misleads
Cuts of dropout or augmentation near the end.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.observations.gap_at_end import gap
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (-0.6, -0.2, 0.2, 0.6, 1.5, 3.0)
BAND = (-0.6, 0.6)


def observe(train_curve: Curve, val_curve: Curve, mixing: str) -> Reading | Unknown:
    if mixing:
        return Unknown(mixing)
    if len(val_curve) < 4:
        return Unknown("fewer than four evaluations", ("more evaluations",))
    early, late = gap(train_curve, val_curve, 0), gap(train_curve, val_curve, -1)
    if isinstance(early, Unknown) or isinstance(late, Unknown):
        return early if isinstance(early, Unknown) else late
    value = late.value - early.value
    text = f"held-out over training loss went from {2**early.value:.3g} to {2**late.value:.3g}"
    return Reading(value, text, late.sigma, late.series, late.clock)
