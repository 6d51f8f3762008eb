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

from wheeltapper.finding import Remedy

ID = "onecycle-overrun"
AREA = "schedule"
ABOUT = "crash"
EXPLAINS = ("onecycle-ahead", "crashed")
SHOWS = {"onecycle-ahead": "seen", "crashed": "seen"}
PROVED_BY = ("onecycle-overrun", "scheduler-stepped-in-init")
TRIAL = "step the scheduler alone as often as the loop does: it raises within milliseconds"
REMEDY = Remedy(
    "Step the scheduler once per optimizer step and nowhere else; the last checkpoint is whole.",
    (),
    "safe",
    "the last epoch ends",
)
