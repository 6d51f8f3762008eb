"""One file holds many launches, begun again and again from the start.

## What it sees
A log to which ten launches or more were appended, each from the first step.

## Why it matters
It is not one run. A sweep, a crash loop or a script called in a loop writes such a file; the last curve
says nothing about the others.

## How it decides
Exact, from positions that fall back to the start; a launch that holds a fifth of all rows or more is the run,
and the others were false starts. Else the longest launch is the one judged; because the user
may have meant another, the answer about the whole is only suspected. When half of the launches end with
a validation loss within 2 % of the logarithm of a small whole number, that is said too: they are at chance.

## When it is wrong
Nothing is wrong with a sweep; then read the launches apart.

## References
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), debugging and performance.
- Binomial test: many launches that end at one place are no chance.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Place
from wheeltapper.run.model import Run, Series

ID = "many-launches"
LIVE = False
MANY = 10
OWN = 0.2  # a launch with a fifth of all rows among ten or more is the run; the others were false starts


def look(run: Run) -> Answer:
    launches = [s for s in run.segments if s.kind == "relaunch"]
    if len(launches) < MANY:
        return Clear(f"{len(launches)} relaunches from the start")
    kept = sum(len(s) for s in run.series.values())
    gone = sum(len(branch) for branches in run.dead.values() for branch in branches)
    if kept > OWN * (kept + gone):
        return Clear(f"{len(launches)} false starts, and one launch that holds {kept / (kept + gone):.0%} of all rows")
    text = f"one file holds {len(launches) + 1} launches from the start; only the longest is judged"
    loss = next(
        (s for s in run.series.values() if s.quantity == "loss" and s.split in ("val", "test") and not s.part), None
    )
    chance = _chance(run, loss) if loss is not None else ""
    first = launches[0]
    return Finding(
        id=ID,
        summary=text + chance,
        severity="ill",
        grade="is-p" if chance else "suspected",
        clock=first.clock,
        onset=first.start,
        p=1e-3 if chance else None,
        numbers={"launches": float(len(launches) + 1)},
        places=(Place(first.file, first.line),),
    )


def _chance(run: Run, loss: Series) -> str:
    ends = [float(branch.values[-1]) for branch in run.dead.get(loss.name, ()) if len(branch)]
    ends = [value for value in ends if math.isfinite(value) and value > 0.5]
    if len(ends) < MANY:
        return ""
    classes = round(math.exp(float(np.median(ends))))
    if classes < 2:
        return ""
    near = float(np.mean([abs(value / math.log(classes) - 1) < 0.02 for value in ends]))
    return f"; {near:.0%} of them end at {loss.name} = ln {classes}, which is chance" if near > 0.5 else ""


CASES = {
    "finding": {"train/loss": [1.0, 0.9] * 15, "at": [0, 1] * 15},
    "clear": {"train/loss": [1.0, 0.9, 0.8, 0.7]},
}
