"""OneCycleLR sets the momentum itself, and the configured momentum is not used.

## What happens
From its first step OneCycleLR writes momentum (or beta1) into the optimizer: 0.95 at a low rate, 0.85 at the
peak, unless cycle_momentum is off. A momentum m makes SGD's steps 1/(1 - m) times as long in the long run.

## How it shows
The logged momentum is not the configured one; a run tuned for a small momentum becomes unstable.

## What else looks like this
A rate that is too high, missing warm-up.

## When this is wrong
The configured momentum is near 0.9: then the cycle changes little. With Adam only beta1 moves, which hardly matters.

## Fix
cycle_momentum=False, or base_momentum and max_momentum set to what is wanted.

## Trial
The first steps of the rise with cycle_momentum=False, same seed.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- arghyaiitb/assignment_9, TRAINING_ISSUES_RESOLVED.md, its train.py and the 80-epoch log that dies in the
  last epoch.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "onecycle-overrides-momentum"
AREA = "schedule"
ABOUT = "learning"
EXPLAINS = ("diverged", "not-finite", "spiked", "oscillating")
SHOWS = {"explosion": "high", "momentum-memory": "in"}
PROVED_BY = ("onecycle-overrides-momentum",)
TRIAL = "the rise of the schedule with cycle_momentum=False, same seed"
REMEDY = Remedy(
    "Pass cycle_momentum=False to OneCycleLR.",
    (),
    "try",
    "the momentum in the optimizer is the configured one, and the loss passes the peak of the rate",
)
