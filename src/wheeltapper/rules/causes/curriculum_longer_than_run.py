"""The curriculum is longer than the run, so the full task is never trained.

## What happens
The difficulty ramps up over more steps than the run has; the model is evaluated and used on a task that it never saw.

## How it shows
The loss rises or stays high as the task grows harder, and the run ends inside the ramp. By arithmetic: the length of the
ramp against the length of the run, in the same unit.

## What else looks like this
A curriculum that is too fast; a plain rise of the loss under a growing task, which is normal.

## When this is wrong
A ramp that is meant to end in a later stage of training.

## Fix
Shorten the ramp to a third or half of the run.

## Trial
The same run with the ramp ending at a third of it; evaluate at full difficulty.

## References
Bengio et al. 2009, Curriculum learning; Soviany et al. 2022, arXiv 2101.10382.
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import against_run

ID = "curriculum-longer-than-run"
AREA = "curriculum"
ABOUT = "learning"
EXPLAINS = ("barely-learned", "plateau", "declined-after-peak", "slow-rise")
SHOWS = {"gap-at-end": "high", "skill": "low"}
PROVED_BY = ("curriculum-longer-than-run",)
TRIAL = "the same run with the ramp ending at a third of it, evaluated at full difficulty"


def remedies(case: Case) -> tuple[Remedy, ...]:
    known = against_run(case, "curriculum.steps")
    edits: tuple[Edit, ...] = ()
    if known is not None:
        (steps,), total, _ = known
        old = case.knob("curriculum.steps")
        edits = (Edit("curriculum.steps", old, int(old * total / steps / 3), "a third of the run"),)
    return (
        Remedy("End the curriculum at a third of the run.", edits, "safe", "the last two thirds train the full task"),
    )
