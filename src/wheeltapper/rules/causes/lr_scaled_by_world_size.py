"""The learning rate is multiplied by the number of processes, once too often.

## What happens
A script multiplies the configured rate by the world size. If the framework or the recipe has done so already,
or the optimizer is one for which the linear rule does not hold, the steps are many times too long.

## How it shows
The logged peak is the configured rate times the number of processes, or times its square; the run breaks at
the end of the warm-up, and the same settings on one device are stable.

## What else looks like this
A rate that is simply too high (the log agrees with the settings), a base rate per batch of 256 that the
framework is meant to scale (timm's lr_base), another parameter group in the log.

## When this is wrong
Linear scaling once, with SGD and a warm-up, is the published rule; it only hurts beyond the critical batch.

## Fix
Set the rate for the global batch in one place, and scale it nowhere else.

## Trial
One device and the same batch per device, at the configured rate: it must be stable.

## References
- Goyal et al. 2017, Accurate, Large Minibatch SGD (arXiv:1706.02677).
- Malladi et al. 2022, On the SDEs and Scaling Rules for Adaptive Gradient Algorithms (arXiv:2205.10287).
- timm, train.py and timm/scheduler (huggingface/pytorch-image-models).
- arghyaiitb/assignment_9, TRAINING_ISSUES_RESOLVED.md, its train.py and the 80-epoch log that dies in the
  last epoch.
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import number, world_size

ID = "lr-scaled-by-world-size"
AREA = "learning rate"
ABOUT = "learning"
EXPLAINS = ("barely-learned", "diverged", "not-finite", "collapsed", "spiked", "at-chance", "lr-off-plan")
SHOWS = {"rate-peak-ratio": "high", "rate-size": "high"}
FORBIDS = {"rate-peak-ratio": "in"}
PROVED_BY = ("lr-scaled-twice",)
TRIAL = "one device at the configured rate, through the end of the warm-up"


def remedies(case: Case) -> tuple[Remedy, ...]:
    rate, world = number(case.knob("optimizer.lr")), world_size(case)
    edits = (Edit("optimizer.lr", rate, rate / world, "undoes one scaling"),) if rate and world and world > 1 else ()
    return (
        Remedy(
            "Scale the rate in one place only; until the code is mended, divide the setting by the world size.",
            edits,
            "try",
            "the logged peak is the rate that was meant",
        ),
    )
