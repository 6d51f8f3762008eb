"""How much of what was won is gone after a resume.

## Definition
(level just after the resume − level just before) / (first level − level just before), of the training loss and of the held-out
score, the worst of all resumes.

## Derivation
A resume that restores weights and optimizer goes on where it stopped: 0. Weights that were not loaded begin again: 1. A lost
optimizer state costs a part of it for a while.

## Healthy band
Below 0.2: the noise of a few rows.

## When it misleads
Losses that change their meaning between launches (another data set, other loss weights).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (0.2, 0.5, 0.85)
BAND = (None, 0.2)
ROWS = 3  # before and after a resume
LEAST = 0.05  # of the run must have passed


def observe(run: Run, train_curve: Curve | None = None, held_out: Curve | None = None) -> Reading | Unknown:
    resumes = [s.start for s in run.segments if s.kind in ("resume", "relaunch") and not s.beside]
    found = [
        reading
        for curve in (train_curve, held_out)
        if curve is not None
        for start in resumes
        if (reading := _step_back(curve, start)) is not None
    ]
    if not found:
        return Unknown("the run was not resumed, or too little stands before or after it")
    return max(found, key=lambda reading: reading.value)


def _step_back(curve: Curve, start: float) -> Reading | None:
    at = curve.series.at[curve.index.astype(int)]
    spot = int(np.searchsorted(at, start, side="left"))
    if spot < ROWS or spot >= len(curve) or curve.share[spot] < LEAST:
        return None
    before = float(np.median(curve.error[spot - ROWS : spot]))
    after = float(np.median(curve.error[spot : spot + min(ROWS, len(curve) - spot)]))
    won = curve.first - before
    if won <= 3 * curve.noise or won <= 0.05 * abs(curve.first):
        return None
    name = curve.series.name
    text = f"{name} went from {curve.shown(before):.4g} to {curve.shown(after):.4g} at the resume at {at[spot]:g}; it had begun at {curve.shown(curve.first):.4g}"
    return Reading((after - before) / won, text, series=name, clock=curve.series.clock, onset=float(at[spot]))
