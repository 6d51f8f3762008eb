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

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import series_like
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series

ID = "loss-weight-runaway"
AREA = "objective"
EXPLAINS = ("diverged", "slow-rise", "spiked", "not-finite", "part-rises", "plateau")
PRIOR = -3.0
TRIAL = "fork with the weights frozen at their values before the drift"

NAMES = r"(loss|task|dynamic|adaptive|uncertainty)[/_. ]*\w*[/_. ]*(weight|coef|lambda)|log_?(var|sigma)|logvar"
GREW = 10.0  # a tenfold weight outgrows any usual balance of terms
GREW_LOG = 2.3  # ln 10: the same for a logged logarithm


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    weights = [s for s in series_like(case.run, NAMES, least=5) if s.quantity in (None, "loss")]
    dynamic = case.knob("loss.dynamic_weights")
    if not weights and not dynamic:
        return Excluded("the weights of the loss are fixed, as far as is known")
    out = []
    moved = [s for s in weights if _moved(s, case.since(s.clock))]
    if weights and not moved:
        return Excluded(f"{weights[0].name} stands still")
    if moved:
        x = moved[0].values[moved[0].finite]
        out.append(
            Evidence(4.5, f"{moved[0].name} drifts from {x[0]:.3g} to {x[-1]:.3g} and does not stop", "weights",
                     (moved[0].place(0),))
        )  # fmt: skip
        train: Series | None = case.get("train_loss")
        if train is not None and np.nanmin(train.values) < 0:
            out.append(Evidence(1.0, "the total loss turned negative, as learned weights let it", "negative"))
    return out


def _moved(weight: Series, onset: float | None) -> bool:
    """It left its first level by a factor of ten before the trouble began, and is still leaving at the end."""
    x = weight.values[weight.finite & ((weight.at <= onset) if onset is not None else True)]
    if len(x) < 4:
        x = weight.values[weight.finite]
    k = max(1, len(x) // 10)
    first, last = float(np.median(x[:k])), float(np.median(x[-k:]))
    still = abs(last - first) >= 0.5 * float(np.max(np.abs(x - first)))
    if "log" in weight.raw.lower():
        return still and abs(last - first) > GREW_LOG
    return still and first > 0 and last > 0 and max(last / first, first / last) > GREW


def remedies(case: Case) -> tuple[Remedy, ...]:
    on = case.knob("loss.dynamic_weights")
    edits = (Edit("loss.dynamic_weights", True, False, "fixed weights"),) if on is True else ()
    return (
        Remedy("Bound the weights, or fix them at their values before the drift.", edits, "try",
               "every weight stays within a factor of ten of its start"),
    )  # fmt: skip
