"""The largest lasting step up of the training loss, against the noise before it.

## Definition
Over all positions: (median of what follows − median of the stretch before) / scatter before, where what follows stays up to the
end; the largest of them.

## Derivation
The noise is measured before the event, so that the event does not hide itself. A recovered spike leaves no lasting step.

## Healthy band
Below 5.

## When it misleads
Curricula, a new phase of training, weights of terms that change by plan.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.observations._breaks import largest_break
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (2.0, 5.0, 10.0, 30.0)
BAND = (None, 5.0)


def observe(steady_curve: Curve) -> Reading | Unknown:
    return largest_break(steady_curve)
