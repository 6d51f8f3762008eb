"""A setting is declared and shown, and reaches nothing that acts.

## What happens
It is parsed, logged, written into the config dump, and no code reads it: warm-up, schedule, clipping, resume.

## How it shows
The run behaves as if it were not set; changing it changes nothing.

## What else looks like this
A setting that acts through a path the audit cannot follow (then it is not reported).

## When this is wrong
The option is used dynamically (getattr, exec, a plugin).

## Fix
Wire it, or delete it.

## Trial
Set it to an absurd value: nothing changes.

## References
- annahayoon/DomainAdaptive_PoissonDiffusion, the script of training_issues_analysis.md: five options
  parsed and never used.
- PyTorch, torch/nn/utils/clip_grad.py.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "option-not-wired"
AREA = "loop"
ABOUT = "learning"
EXPLAINS = (
    "diverged", "not-finite", "spiked", "declined-after-peak", "plateau", "lr-off-plan", "too-slow", "oscillating",
    "slow-rise", "grad-norm-growth", "barely-learned", "at-chance", "val-left-behind",
)  # fmt: skip
SHOWS = {"warm-up-ignored": "high", "rate-off-plan": "high"}
PROVED_BY = ("option-never-used", "config-key-never-read", "adapter-never-applied")
TRIAL = "set the option to an absurd value for a few steps: if nothing changes, it is not wired"
REMEDY = Remedy(
    "Wire the settings that the script only prints, or delete them.",
    (),
    "safe",
    "the effective schedule matches the declared one",
)
