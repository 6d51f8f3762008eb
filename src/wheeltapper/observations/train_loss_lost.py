"""How much of what the training loss had won was lost again.

## Definition
(last − best) / (first − best) of the training loss.

## Derivation
As `score-lost`. A training loss that rises and stays up is the plainest sign of trouble in the optimisation, unless the task
itself grew harder.

## Healthy band
Below 0.1.

## When it misleads
Curricula, growing resolution, weights of terms that rise by plan; noisy losses of diffusion.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.observations.score_lost import lost
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (0.03, 0.1, 0.25, 0.5, 0.9, 1.5)
BAND = (None, 0.1)


def observe(steady_curve: Curve) -> Reading | Unknown:
    return lost(steady_curve)
