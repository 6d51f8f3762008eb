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

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.simulate.plan import Plan

ID = "schedule-never-decays"
AREA = "schedule"
EXPLAINS = ("plateau", "oscillating", "slow-rise", "lr-off-plan", "val-swings")
PRIOR = -3.0
TRIAL = "fork from the last checkpoint with a tenth of the rate: the loss must fall at once"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    out = proofs(case, "scheduler-never-stepped")
    shape, match, plan = case.get("lr_shape"), case.get("lr_match"), case.get("lr_plan")
    if shape is not None and shape.kind != "constant":
        return Excluded("the logged rate does change")
    if match is not None and match.verdict == "matches":
        return Excluded("the logged rate follows its plan")
    lr = case.get("lr")
    if match is not None and shape is not None and lr is not None and match.verdict == "differs":
        expected = _planned_at_end(plan, lr)
        if expected is not None and expected < 0.5 * shape.peak:
            text = f"the rate is still {shape.last:.3g} at the end, where the plan had fallen to {expected:.3g}"
            out.append(Evidence(7.0, text, "proof", (lr.place(len(lr) - 1),)))
    still = [f for f in case.found("lr-off-plan", severity="ill") if "pace" not in f.numbers]
    if still and match is None:
        out.append(Evidence(7.0, still[0].summary, "proof", still[0].places))
    if not out and shape is not None and case.found("plateau", severity="ill"):
        # A flat loss at a rate that never falls is the noise floor of that rate in some cases, not in most.
        out.append(Evidence(1.5, f"the rate is {shape.peak:.3g} on all {shape.n} rows", "rate"))
    return out or Excluded("nothing shows a decay that was missed")


def _planned_at_end(plan: Plan, lr: Series) -> float | None:
    """What the plan had come to where the log ends: a decay that was still ahead was not missed."""
    if {"step": "steps", "epoch": "epochs", "micro_step": "micro_steps"}.get(lr.clock) != plan.unit:
        return None
    tick = min(int(lr.at[-1]), plan.n)
    value = float(plan.lr()[tick]) if tick >= 0 else np.nan
    return value if np.isfinite(value) else None


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Step the scheduler; decay the rate over the last fifth of the run at least.",
            (),
            "try",
            "the loss leaves its level when the rate falls",
        ),
    )
