"""The learning rate schedule was planned anew at a resume.

## What happens
The run is resumed with another number of epochs, or without the scheduler's state: the schedule is computed
again over the new length, and the rate jumps up. What had been annealed is shaken up.

## How it shows
The rate jumps at a resume against its own course; the score falls there and does not regain its best.

## What else looks like this
A lost optimizer state gives a short bump of the loss, without a jump of the rate; warm restarts jump by plan.

## When this is wrong
The jump was intended, as a second phase with its own budget.

## Fix
Resume with the same total and the scheduler's state; or start a new, short cool-down from the checkpoint.

## Trial
Resume from the same checkpoint with the old total: the score must hold.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- PyTorch, torch/optim/optimizer.py (load_state_dict).
- OPT-175B logbook (facebookresearch/metaseq, projects/OPT/chronicles).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "schedule-restarted-on-resume"
AREA = "schedule"
ABOUT = "learning"
EXPLAINS = ("restart-jump", "starts-late", "lr-rises-again", "declined-after-peak")
SHOWS = {"rate-rises-again": "high"}
TRIAL = "resume from the same checkpoint with the old total and the scheduler's state: the score must hold"
REMEDY = Remedy(
    "Resume with the same total length and the scheduler's state, from the checkpoint before the jump.",
    (),
    "safe",
    "the rate continues its course and the score holds",
)
