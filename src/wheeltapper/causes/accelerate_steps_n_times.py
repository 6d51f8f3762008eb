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

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._settings import length_of_run, number, world_size
from wheeltapper.finding import Evidence, Remedy

ID = "accelerate-steps-n-times"
AREA = "schedule"
EXPLAINS = ("lr-gone-early", "lr-rises-again", "too-slow", "declined-after-peak", "lr-off-plan")
PRIOR = -2.5
TRIAL = "print the rate after ten updates on one and on two processes"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    world = world_size(case)
    if world is None:
        return Excluded("the number of processes is not known")
    if world <= 1:
        return Excluded("one process trains")
    match, shape, lr = case.get("lr_match"), case.get("lr_shape"), case.get("lr")
    if match is not None and match.verdict == "matches":
        return Excluded("the logged rate follows its plan")
    if match is not None and match.verdict == "paced":
        names = match.factor_names
        if "world size" not in names or match.time_factor <= 1:
            return Excluded(f"{match.why}, which is not the number of processes")
        text = f"{match.why}: once for each of the {world:g} processes"
        # Where another number of the run is the same, the log cannot tell which of them it was.
        return [Evidence(7.0, text, "proof") if len(names) == 1 else Evidence(3.0, f"{text}, or {names}", "pace")]
    total = length_of_run(case, "steps")
    ends = None if shape is None else shape.ends_at
    if lr is None or lr.clock != "step" or total is None or ends is None:
        return Excluded("no learning rate is logged that would show it")
    accumulation = number(case.knob("batch.accumulation")) or 1.0
    if abs(ends * world / total - 1) < 0.03:
        bits = 5.0 if accumulation != world else 3.0
        return [Evidence(bits, f"the schedule ends at step {ends:,.0f}, 1/{world:g} of {total:,.0f}", "pace")]
    return Excluded(f"the schedule ends at step {ends:,.0f}, which is not 1/{world:g} of the run")


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Give the scheduler updates times processes (warm-up as well), or keep it out of accelerator.prepare.",
            (),
            "safe",
            "the rate reaches its end with the run",
        ),
    )
