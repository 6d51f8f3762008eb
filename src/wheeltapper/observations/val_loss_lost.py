"""How much of what the held-out loss had won was lost again.

## Definition
(last − best) / (first − best) of the held-out loss.

## Derivation
As `score-lost`. The loss turns before the score does: confidence grows on answers that are wrong.

## Healthy band
Below 0.25: a held-out loss may turn while the score still improves.

## When it misleads
Classifiers whose accuracy still improves; label smoothing switched off.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.observations.score_lost import lost
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (0.03, 0.1, 0.25, 0.5, 0.9, 1.5)
BAND = (None, 0.25)


def observe(val_curve: Curve) -> Reading | Unknown:
    return lost(val_curve)
