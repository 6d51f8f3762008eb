"""Accelerate steps the scheduler once for every process.

## What happens
A scheduler that was prepared by Accelerate advances num_processes ticks per update, unless batches are split. A
schedule laid out in updates is then over after 1/n of the run.

## How it shows
The logged rate runs n times as fast as planned, n being the number of processes, and lies at its end (or, with a
cosine, climbs again) for the rest of the run.

## What else looks like this
Accumulation counted twice (the factor is the accumulation), a schedule in epochs stepped by batches (the factor is
the steps of an epoch), a schedule that is simply too short.

## When this is wrong
One process trains, or the rate follows its plan.

## Fix
Lay the schedule out for updates times processes, as diffusers does, or do not prepare the scheduler.

## Trial
Print the rate after the first ten updates on one and on two processes.

## References
- Accelerate, src/accelerate/scheduler.py (huggingface/accelerate).
- Diffusers, examples/text_to_image/train_text_to_image.py (huggingface/diffusers).
- timm, train.py and timm/scheduler (huggingface/pytorch-image-models).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "accelerate-steps-n-times"
AREA = "schedule"
ABOUT = "efficiency"
EXPLAINS = ("lr-gone-early", "lr-rises-again", "too-slow", "declined-after-peak", "lr-off-plan")
SHOWS = {"rate-off-plan": "high", "rate-gone": "high"}
FORBIDS = {"rate-off-plan": "in"}
TRIAL = "print the rate after ten updates on one and on two processes"
REMEDY = Remedy(
    "Give the scheduler updates times processes (warm-up as well), or keep it out of accelerator.prepare.",
    (),
    "safe",
    "the rate reaches its end with the run",
)
