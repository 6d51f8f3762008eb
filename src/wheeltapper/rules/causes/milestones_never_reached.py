"""The milestones of the schedule lie beyond the end of the run.

## What happens
The rate is cut at fixed steps or epochs that this run never reaches: a recipe for 300 epochs run for 30, or
milestones in steps for a scheduler that counts epochs. The rate stays at its peak.

## How it shows
A constant logged rate, and milestones in the settings that are all larger than the planned length.

## What else looks like this
A scheduler that is never stepped, a constant rate that was chosen, a run that was stopped before its milestones.

## When this is wrong
Some milestones are reached; or the scheduler counts another unit than the settings' name says.

## Fix
Put the cuts at shares of the run (a half, three quarters).

## Trial
Step the scheduler alone for the planned number of steps: it must never cut. A fork with a tenth of the rate must gain.

## References
- PyTorch, torch/optim/lr_scheduler.py.
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import against_run

ID = "milestones-never-reached"
AREA = "schedule"
ABOUT = "learning"
EXPLAINS = ("plateau", "oscillating", "slow-rise", "lr-off-plan")
SHOWS = {"milestones-inside": "high"}
FORBIDS = {"milestones-inside": "in"}
PROVED_BY = ("milestones-never-reached",)
TRIAL = "step the scheduler alone for the planned number of steps: it must never cut"


def remedies(case: Case) -> tuple[Remedy, ...]:
    known = against_run(case, "schedule.milestones")
    old = case.knob("schedule.milestones")
    edits: tuple[Edit, ...] = ()
    if known is not None and isinstance(old, list):
        milestones, total, _ = known
        # The same proportions, moved so that the last cut comes at nine tenths of the run.
        new = [round(value * 0.9 * total / max(milestones)) for value in old]
        if new != old and min(new) > 0:
            edits = (Edit("schedule.milestones", old, new, "the same proportions within the run"),)
    return (Remedy("Move the milestones into the run.", edits, "safe", "the logged rate falls at each milestone"),)
