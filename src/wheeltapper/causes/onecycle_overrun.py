"""OneCycleLR is stepped once more than its length, and raises an error at the very end.

## What happens
The scheduler is stepped before the first update (to silence a warning, in a constructor, after a resume), or
its total is smaller than the number of updates. OneCycleLR refuses to go past its end.

## How it shows
All is well until the last batch of the last epoch; the log stops there, or ends in "Tried to step".

## What else looks like this
Any crash at the end: saving, a final evaluation, a logger that was closed.

## When this is wrong
The schedule, placed exactly from its logged rates, is in step with the loop.

## Fix
Step the scheduler once per optimizer step and nowhere else; give it the true number of steps.

## Trial
Step the scheduler alone as often as the loop does: it raises within milliseconds.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- arghyaiitb/assignment_9, TRAINING_ISSUES_RESOLVED.md, its train.py and the 80-epoch log that dies in the
  last epoch.
"""

from __future__ import annotations

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Place, Remedy

ID = "onecycle-overrun"
AREA = "schedule"
EXPLAINS = ("onecycle-ahead", "crashed")
PRIOR = -1.0
TRIAL = "step the scheduler alone as often as the loop does: it raises within milliseconds"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    ahead = case.found("onecycle-ahead")
    said = [e for e in case.run.events if "Tried to step" in e.text]
    out = []
    if ahead:
        out.append(Evidence(7.0, ahead[0].summary, "proof", ahead[0].places))
    if said:
        out.append(
            Evidence(
                9.0,
                f"the log says so: {said[0].text.strip().splitlines()[-1][:120]}",
                "proof",
                (Place(said[0].file, said[0].line),),
            )
        )
    code = case.audited("onecycle-overrun", "scheduler-stepped-in-init")
    out += [Evidence(7.0, finding.summary, "code", finding.places) for finding in code]
    return out or Excluded("the schedule is in step with the loop, as far as it is logged")


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Step the scheduler once per optimizer step and nowhere else; the last checkpoint is whole.",
            (),
            "safe",
            "the last epoch ends",
        ),
    )
