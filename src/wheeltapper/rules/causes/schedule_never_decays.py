"""The learning rate never decays, though it was meant to.

## What happens
The scheduler is built but never stepped, or its settings are not read: the rate stays at its peak. The loss then
settles at the noise floor of that rate, and the gain that a decay brings at the end never comes.

## How it shows
The logged rate is constant where the settings plan a decay; the loss is flat and noisy long before the end.

## What else looks like this
A constant rate that was chosen (WSD before its cool-down), milestones that were never reached, a plateau rule that
waits, memorised data.

## When this is wrong
The rate that is logged belongs to another parameter group, or the decay was still ahead where the record stops.

## Fix
Step the scheduler after each optimizer step (or epoch, if it counts epochs).

## Trial
Fork from the last checkpoint with a tenth of the rate for a few hundred steps: the loss must fall at once.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- Tissue et al. 2024, Scaling Law with Learning Rate Annealing (arXiv:2408.11029).
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "schedule-never-decays"
AREA = "schedule"
ABOUT = "learning"
EXPLAINS = ("plateau", "oscillating", "slow-rise", "lr-off-plan", "val-swings")
SHOWS = {"rate-off-plan": "high", "lr-off-plan": "seen", "settle": "high"}
FORBIDS = {"rate-gone": "high"}
PROVED_BY = ("scheduler-never-stepped",)
TRIAL = "fork from the last checkpoint with a tenth of the rate: the loss must fall at once"
REMEDY = Remedy(
    "Step the scheduler; decay the rate over the last fifth of the run at least.",
    (),
    "try",
    "the loss leaves its level when the rate falls",
)
