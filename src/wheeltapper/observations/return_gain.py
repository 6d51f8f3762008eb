"""How far the return rose, against the return of the first episodes.

## Definition
(best level − first level) / the larger of the first level's size and the scatter of the returns.

## Derivation
The first episodes are those of an untrained policy: what it earns is the level of having learned nothing. A gain is seen
only beyond the scatter, and matters in shares of that level.

## Healthy band
Above 1: the return doubled.

## When it misleads
Policies that were trained before; returns that begin near their ceiling.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (0.3, 1.0, 3.0)
BAND = (1.0, None)


def observe(score_curve: Curve) -> Reading | Unknown:
    if score_curve.series.quantity != "return" or len(score_curve) < 8:
        return Unknown("no return of episodes is logged", ("episode return",))
    x = -score_curve.error
    first = float(np.median(x[: max(1, len(x) // 20)]))
    best = -score_curve.best
    value = (best - first) / max(abs(first), score_curve.noise, 1e-12)
    text = f"{score_curve.series.name} rose from {first:.4g} to {best:.4g}"
    return Reading(value, text, series=score_curve.series.name, clock=score_curve.series.clock)
