"""The schedule counts one unit and is stepped in another.

## What happens
A schedule laid out in batches is stepped once an epoch, so that it hardly leaves its start; or one laid out in
epochs is stepped at every batch, so that the rate is gone within the first epoch.

## How it shows
The logged rate runs at 1/(steps per epoch) of its plan, or that many times as fast. A one-cycle run stays at
max_lr/25, its first value. A decay that is over before the first epoch ends.

## What else looks like this
A warm-up longer than the run, Accelerate's stepping once per process (the factor is the world size), a rate that
is too low by itself.

## When this is wrong
The plan was worked out with the wrong number of steps per epoch.

## Fix
Step the scheduler where it counts: per batch if it was given batches, per epoch if epochs.

## Trial
Step the scheduler alone as the loop does, and compare its last value with the one that was meant.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- PyTorch Lightning, core/module.py and core/optimizer.py (Lightning-AI/pytorch-lightning).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "schedule-unit-mismatch"
AREA = "schedule"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "stuck-from-start", "too-slow", "at-chance", "at-prior", "never-left-zero",
    "worse-than-trivial", "plateau", "oscillating", "lr-off-plan", "lr-gone-early", "lr-rises-again",
    "warmup-longer-than-run",
)  # fmt: skip
SHOWS = {"rate-off-plan": "high"}
FORBIDS = {"rate-off-plan": "in"}
PROVED_BY = ("scheduler-wrong-unit", "schedule-too-fast", "cosine-never-ends")
TRIAL = "step the scheduler alone as the loop does: milliseconds"
REMEDY = Remedy(
    "Step the scheduler in the unit it was laid out in.",
    (),
    "safe",
    "the logged rate equals the planned one at the end of the first epoch",
)
