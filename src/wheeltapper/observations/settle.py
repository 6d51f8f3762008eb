"""How much the held-out score still moves at the end.

## Definition
Scatter of the held-out score over its last fifth, over what it won.

## Derivation
A rate that decays calms the score. One that still jumps by a good part of its gain has not settled: a rate that is too high,
or statistics of tiny batches.

## Healthy band
Below 0.1.

## When it misleads
Small held-out sets and rewards of few episodes scatter by themselves.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (0.02, 0.05, 0.1, 0.2, 0.45)
BAND = (None, 0.1)


def observe(held_out: Curve) -> Reading | Unknown:
    n = len(held_out)
    if n < 8 or held_out.gain <= 0:
        return Unknown("fewer than eight evaluations, or none better than the first", ("more evaluations",))
    tail = held_out.error[-max(5, n // 5) :]
    spread = float(np.std(np.diff(tail))) / math.sqrt(2)
    value = spread / max(held_out.gain, 1e-12)
    text = f"over its last {len(tail)} evaluations {held_out.series.name} still scatters by {value:.0%} of what it won"
    return Reading(value, text, value / math.sqrt(2 * len(tail)), held_out.series.name, held_out.series.clock)
