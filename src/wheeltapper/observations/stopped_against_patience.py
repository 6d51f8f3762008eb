"""Whether early stopping stopped the run when it had stopped to improve.

## Definition
Evaluations since the best one at the end of a run that ended before its plan, over the patience of its early stopping.

## Derivation
Early stopping ends a run when its score was not better for `patience` evaluations: 1. A run that it ends while every
evaluation was the best so far waits for the wrong end (0): the mode is that of another score.

## Healthy band
Above 0.5.

## When it misleads
A run that somebody stopped, or that was killed, before early stopping could.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.outcome import Curve
from wheeltapper.study.progress import Progress

ABOUT = "learning"
LIVE = False
EDGES = (0.5,)
BAND = (0.5, None)
NEAR = 1.5  # evaluations: the first one may count or not
EARLY = 0.95


def observe(knobs: Knobs, progress: Progress, held_out: Curve) -> Reading | Unknown:
    patience = knobs.value("run.early_stop")
    if not isinstance(patience, int | float) or isinstance(patience, bool) or patience < 1:
        return Unknown("early stopping is not configured", ("the patience of early stopping",))
    if progress.state == "crashed" or progress.share is None or progress.share >= EARLY:
        return Unknown("the run was not stopped before its plan")
    evaluations, best = len(held_out), int(np.argmin(held_out.error))
    since = evaluations - 1 - best
    worst = evaluations - 1 - int(np.argmax(held_out.error))
    if since < patience / 2 and abs(worst - patience) > NEAR:
        return Unknown("it did not stop when early stopping would have, either way")
    name = held_out.series.name
    text = f"the run stopped after {evaluations} evaluations with a patience of {patience:g}; {name} was best {since} evaluations before that"
    return Reading(since / float(patience), text, series=name, clock=held_out.series.clock)
