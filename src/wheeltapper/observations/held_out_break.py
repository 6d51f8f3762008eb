"""The largest lasting step for the worse of the held-out score, against the noise before it.

## Definition
As `train-break`, on the held-out score (else loss).

## Derivation
As `train-break`.

## Healthy band
Below 5.

## When it misleads
Evaluations that change their data.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.observations._breaks import largest_break
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (2.0, 5.0, 10.0, 30.0)
BAND = (None, 5.0)


def observe(held_out: Curve) -> Reading | Unknown:
    return largest_break(held_out)
