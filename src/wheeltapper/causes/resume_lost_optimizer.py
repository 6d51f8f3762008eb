"""The optimizer's state was lost at a resume.

## What happens
Without its moments Adam's first steps are as large as the learning rate allows, whatever the gradients; momentum starts
from zero.

## How it shows
A bump of the loss at the resume that fades over tens to hundreds of steps, with the learning rate in its course.

## What else looks like this
A schedule that was planned anew (the rate jumps), repeated data (the loss is too low, then rises).

## When this is wrong
The bump is within noise, or the rate jumped as well.

## Fix
Save and load the optimizer with the model; warm up for a few hundred steps where it is lost.

## Trial
Resume twice from the same checkpoint, with and without the state: the bump must come only without.

## References
KNOWLEDGE OUT-16; ECOSYSTEM §1.2 cases 47, 48.
"""

from __future__ import annotations

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.finding import Evidence, Remedy

ID = "resume-lost-optimizer"
AREA = "resume"
EXPLAINS = ("restart-jump", "starts-late", "spiked", "declined-after-peak")
PRIOR = -1.5
TRIAL = "resume twice from one checkpoint, with and without the optimizer's state"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    out = proofs(case, "resume-incomplete", "resume-never-loaded")
    jumps = case.found("restart-jump")
    bumps = [f for f in jumps if "sigmas" in f.numbers]
    if bumps:
        out.append(Evidence(2.5, bumps[0].summary, "bump", bumps[0].places))
    if any(f.numbers.get("ratio", 1.0) > 1.5 for f in jumps):
        out.append(Evidence(-2.0, "the learning rate jumped there, which explains a bump by itself", "rate"))
    late = case.found("starts-late")
    if late and late[0].numbers.get("dropped"):
        out.append(Evidence(2.0, late[0].summary, "config", late[0].places))
    resumed = any(s.kind == "resume" for s in case.run.segments) or bool(late)
    return out if resumed or out else Excluded("the record shows no resume")


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Resume with the optimizer's state.", (), "safe", "the loss continues within its band across the resume"
        ),
    )
