"""Gradients are accumulated on paper only: the real batch is the micro-batch.

## What happens
The option is parsed and printed, but the loop steps the optimizer at every micro-batch.

## How it shows
The log prints an effective batch that the step count contradicts: steps per epoch are those of the micro-batch; training
is noisier than planned, and the schedule ends early by the factor.

## What else looks like this
A batch that was chosen small on purpose.

## When this is wrong
Steps per epoch match the declared effective batch.

## Fix
Step the optimizer every n-th micro-batch, with the loss divided by n.

## Trial
Count optimizer steps in one epoch: they must be samples / (micro-batch x accumulation x devices).

## References
- annahayoon/DomainAdaptive_PoissonDiffusion, the script of training_issues_analysis.md: five options
  parsed and never used.
"""

from __future__ import annotations

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.finding import Evidence, Remedy

ID = "accumulation-not-done"
AREA = "batch"
EXPLAINS = (
    "diverged",
    "oscillating",
    "spiked",
    "not-finite",
    "plateau",
    "declined-after-peak",
    "lr-off-plan",
    "lr-gone-early",
)
PRIOR = -3.0
TRIAL = "count the optimizer steps of one epoch"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    out = proofs(case, "accumulation-not-implemented", "prints-effective-batch-that-is-not")
    steps = case.knob("batch.accumulation")
    if not out and (not isinstance(steps, (int, float)) or steps <= 1):
        return Excluded("no accumulation is configured")
    per_epoch, size, batch = (
        case.run.fact("steps_per_epoch"),
        case.knob("data.train_size"),
        case.knob("batch.per_device"),
    )
    world = case.knob("world_size") or 1
    if all(isinstance(v, (int, float)) and v > 0 for v in (per_epoch, size, batch, steps)):
        if abs(per_epoch / (size / (batch * world)) - 1) < 0.05:
            out.append(
                Evidence(
                    1.0,  # many logs count micro-batches as steps, so the count alone says little
                    f"{per_epoch:g} steps per epoch are {size:g} samples over a batch of {batch * world:g}, not over {steps:g} of them",
                    "count",
                )
            )
        elif abs(per_epoch / (size / (batch * world * steps)) - 1) < 0.05:
            return Excluded("steps per epoch match the accumulated batch")
    return out or Excluded("neither code nor counts show it")


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Step the optimizer every n-th micro-batch, with the loss divided by n.",
            (),
            "safe",
            "optimizer steps per epoch fall by the accumulation factor",
        ),
    )
