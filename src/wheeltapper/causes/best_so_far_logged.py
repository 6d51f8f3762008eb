"""The log shows the best score so far, not the current one.

## What happens
The value that decides about the checkpoint is printed instead of the value of this evaluation. Any decline is
hidden, and the curve can only stand or improve.

## How it shows
The score never gets worse, repeats to all digits for stretches, and steps up between them.

## What else looks like this
A stale evaluation (no steps up at all), weights that do not move, a score with few possible values on a small
set.

## When this is wrong
The score got worse once: a best-so-far cannot.

## Fix
Log the current score, and the best beside it under its own name.

## Trial
Read the line that logs the score; or evaluate two checkpoints of one stretch: different scores decide.

## References
- BigScience 104B chronicles (bigscience-workshop/bigscience, train/tr8-104B-wide).
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.signals.statistics import badness

ID = "best-so-far-logged"
AREA = "evaluation"
EXPLAINS = ("constant-metric",)
PRIOR = -2.0
TRIAL = "evaluate two checkpoints of one flat stretch: different scores decide"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    held = [f for f in case.found("constant-metric") if f.series in case.run.series]
    if not held:
        return Excluded("no score repeats exactly")
    series: Series = case.run.series[held[0].series or ""]
    x = badness(series.values[series.finite], series.better)
    if series.better not in ("up", "down") or len(x) < 10:
        return []
    moves = np.diff(x)
    if np.any(moves > 0):
        return Excluded(f"{series.name} got worse at times, which a best so far cannot")
    steps = int(np.sum(moves < 0))
    stands = int(np.sum(moves == 0))
    last = int(np.flatnonzero(moves < 0)[-1]) if steps else 0
    between = int(np.sum(moves[:last] == 0))  # a score that stands only at its end is one that froze
    if steps == 0:
        return Excluded(f"{series.name} never moved at all")
    # Noise makes half of all moves bad: n moves without one have a chance of 2^-n on a plateau.
    if steps >= 3 and stands >= 5 and between >= 2:
        return [
            Evidence(5.0, f"{series.name} never got worse in {len(moves)} moves, improved {steps} times and stood exactly "
                     f"{stands} times", "shape", held[0].places)
        ]  # fmt: skip
    return []


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Log the current score beside the best one.", (), "safe", "the logged score gets worse at times"),
    )  # fmt: skip
