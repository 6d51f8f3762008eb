"""Whether one of several tasks, heads or parts learns nothing while the others do.

## Definition
Among the scores of one kind on held-out data that differ only by their part, and among the parts of the training loss: the
share of its first error that the worst part lost, over the median share that the others lost. A part that rises is not stuck, and
regularisers are no tasks.

## Derivation
Heads on one trunk learn together, at their own speeds. One that does not move at all gets no gradient, has no weight in the
loss, or has targets that do not go with its inputs.

## Healthy band
Above 0.1.

## When it misleads
A part that was at its floor from the start; a regulariser under a name that we do not know.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.reading.record import ClockName
from wheeltapper.run.model import Run, Series
from wheeltapper.study.outcome import RATIO, Curve, curve_of

ABOUT = "learning"
EDGES = (0.03, 0.1, 0.3)
BAND = (0.1, None)
LEARNED = 0.1  # of its first error: what the others must have lost
FEWEST = 8  # values
RISES = 1.1  # times its first error: it moves, only the other way
REGULARISERS = ("kl", "reg", "regularisation", "regularization", "l2", "ewc", "penalty", "entropy", "aux", "balance")


def observe(run: Run, clock_ends: dict[ClockName, float]) -> Reading | Unknown:
    groups: dict[tuple[str | None, str | None], list[Curve]] = {}
    for s in run.series.values():
        if s.part and _is_part(s) and (curve := curve_of(s, clock_ends)) is not None and len(curve) >= FEWEST:
            groups.setdefault((s.quantity, s.split), []).append(curve)
    found = [reading for curves in groups.values() if (reading := _worst(curves)) is not None]
    if not found:
        return Unknown("no parts that can be compared are logged", ("scores by task or the parts of the loss",))
    return min(found, key=lambda reading: reading.value)


def _is_part(series: Series) -> bool:
    if set((series.part or "").lower().split("_")) & set(REGULARISERS):
        return False
    return series.better in ("up", "down") and (series.split in ("val", "test") or series.quantity == "loss")


def _worst(curves: list[Curve]) -> Reading | None:
    curves = [c for c in curves if c.scale == RATIO and c.first > 0 and c.last < RISES * c.first]
    if len(curves) < 2:
        return None
    lost = [(c.first - c.best) / c.first for c in curves]
    worst = int(np.argmin(lost))
    others = float(np.median([x for i, x in enumerate(lost) if i != worst]))
    c = curves[worst]
    if others < LEARNED or c.first < 3 * c.noise:
        return None
    text = f"{c.series.name} went from {c.shown(c.first):.4g} to {c.shown(c.best):.4g} at best, while the other parts lost {100 * others:.0f} % of their error"
    return Reading(max(0.0, lost[worst]) / others, text, series=c.series.name, clock=c.series.clock)
