"""How far the held-out loss jumps from one evaluation to the next.

## Definition
Median of |log2| of the ratio of successive held-out losses in the second half of the run.

## Derivation
Weights change little between evaluations late in a run, and so must the loss on fixed data. Jumps mean that the weights are
thrown about (rate), or that the evaluation itself is random (training mode, batch statistics, random crops).

## Healthy band
Below 0.06 (4 %).

## When it misleads
Small held-out sets drawn anew each time.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "evaluation"
EDGES = (0.003, 0.01, 0.03, 0.06, 0.15, 0.4)
BAND = (None, 0.06)


def observe(val_curve: Curve) -> Reading | Unknown:
    if len(val_curve) < 8 or val_curve.scale != "ratio":
        return Unknown("fewer than eight evaluations", ("more evaluations",))
    late = np.log2(np.maximum(val_curve.error[len(val_curve) // 2 :], 1e-12))
    steps = np.diff(late)
    value = float(np.median(np.abs(steps - np.median(steps))))
    text = f"in the second half {val_curve.series.name} moves by {2**value - 1:.1%} from one evaluation to the next"
    return Reading(value, text, series=val_curve.series.name, clock=val_curve.series.clock)
