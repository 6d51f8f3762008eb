"""Weights of the loss that are learned or adapted run away.

## What happens
With learned uncertainty a term that gets small gets a larger weight, without limit: 1/(2L) as L goes to zero.
Weights driven by ratios of losses chase their noise in the same way.

## How it shows
One weight (or log-variance) drifts far and does not stop; the total may turn negative; one term takes over.

## What else looks like this
A fixed switch of weights (the jump is exactly Δw·L), terms that conflict at fixed weights, divergence.

## When this is wrong
The weights are fixed, or stand still at the onset.

## Fix
Bound the weights, train log-variances at a lower rate and without decay, or fix the weights at good values.

## Trial
Fork with the weights frozen at their values before the drift.

## References
- Karras et al. 2024, Analyzing and Improving the Training Dynamics of Diffusion Models (arXiv:2312.02696;
  NVlabs/edm2).
- Kendall, Gal and Cipolla 2018, Multi-Task Learning Using Uncertainty to Weigh Losses (arXiv:1705.07115).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "loss-weight-runaway"
AREA = "objective"
ABOUT = "learning"
EXPLAINS = ("diverged", "slow-rise", "spiked", "not-finite", "part-rises", "plateau")
SHOWS = {"loss-weights-move": "high"}
TRIAL = "fork with the weights frozen at their values before the drift"


def remedies(case: Case) -> tuple[Remedy, ...]:
    on = case.knob("loss.dynamic_weights")
    edits = (Edit("loss.dynamic_weights", True, False, "fixed weights"),) if on is True else ()
    return (
        Remedy(
            "Bound the weights, or fix them at their values before the drift.",
            edits,
            "try",
            "every weight stays within a factor of ten of its start",
        ),
    )
