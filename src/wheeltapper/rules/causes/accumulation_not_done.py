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

from wheeltapper.finding import Remedy

ID = "accumulation-not-done"
AREA = "batch"
ABOUT = "learning"
EXPLAINS = (
    "diverged", "oscillating", "spiked", "not-finite", "plateau", "declined-after-peak", "lr-off-plan",
    "lr-gone-early",
)  # fmt: skip
SHOWS = {"train-scatter": "high"}
PROVED_BY = ("accumulation-not-implemented", "prints-effective-batch-that-is-not")
TRIAL = "count the optimizer steps of one epoch"
REMEDY = Remedy(
    "Step the optimizer every n-th micro-batch, with the loss divided by n.",
    (),
    "safe",
    "optimizer steps per epoch fall by the accumulation factor",
)
