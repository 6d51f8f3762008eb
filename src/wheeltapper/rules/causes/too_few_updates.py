"""The run is over before it could learn: too few updates.

## What happens
A few epochs of a small set in large batches are a few dozen updates. However good each of them is, the weights cannot
get from their first values to where they are needed.

## How it shows
The training loss falls steadily to the last row, without a knee; the held-out score is best at the very end.

## What else looks like this
A learning rate that is too low falls as steadily, but over thousands of updates.

## When this is wrong
The loss was flat long before the end, or the run starts from weights that fit the task.

## Fix
More epochs, or a smaller batch with the same number of epochs.

## Trial
Go on for as long again with the rate held: the loss must go on falling as before.

## References
- Hoffer, Hubara and Soudry 2017, Train longer, generalize better (arXiv:1705.08741).
- Masters and Luschi 2018, Revisiting Small Batch Training for Deep Neural Networks (arXiv:1804.07612).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import like, number

ID = "too-few-updates"
AREA = "length"
ABOUT = "learning"
EXPLAINS = ("too-slow", "barely-learned", "at-chance", "at-prior", "worse-than-trivial", "never-left-zero")
SHOWS = {"updates": "low", "still-falling": "high", "travel": "low"}
FORBIDS = {"plateau": "seen"}
PROVED_BY = ("run-shorter-than-declared",)
TRIAL = "go on for as long again with the rate held: the loss goes on falling as before"
LONGER = 10  # a run that has hardly begun needs more than twice its length


def remedies(case: Case) -> tuple[Remedy, ...]:
    for knob in ("run.epochs", "run.total_steps"):
        now = number(case.knob(knob))
        if now is not None:
            edit = Edit(knob, case.knob(knob), like(case.knob(knob), LONGER * now), "ten times as long")
            return (Remedy("Train ten times as long.", (edit,), "try", "the loss reaches its knee within the run"),)
    return (Remedy("Train ten times as long, or in smaller batches.", (), "try", "the loss reaches its knee"),)
