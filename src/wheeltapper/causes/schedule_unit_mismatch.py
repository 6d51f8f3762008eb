"""The schedule counts one unit and is stepped in another.

## What happens
A schedule laid out in batches is stepped once an epoch, so that it hardly leaves its start; or one laid out in
epochs is stepped at every batch, so that the rate is gone within the first epoch.

## How it shows
The logged rate runs at 1/(steps per epoch) of its plan, or that many times as fast. A one-cycle run stays at
max_lr/25, its first value. A decay that is over before the first epoch ends.

## What else looks like this
A warm-up longer than the run, Accelerate's stepping once per process (the factor is the world size), a rate that
is too low by itself.

## When this is wrong
The plan was worked out with the wrong number of steps per epoch.

## Fix
Step the scheduler where it counts: per batch if it was given batches, per epoch if epochs.

## Trial
Step the scheduler alone as the loop does, and compare its last value with the one that was meant.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- PyTorch Lightning, core/module.py and core/optimizer.py (Lightning-AI/pytorch-lightning).
"""

from __future__ import annotations

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._settings import number
from wheeltapper.finding import Evidence, Remedy

ID = "schedule-unit-mismatch"
AREA = "schedule"
EXPLAINS = (
    "barely-learned",
    "stuck-from-start",
    "too-slow",
    "at-chance",
    "at-prior",
    "never-left-zero",
    "worse-than-trivial",
    "plateau",
    "oscillating",
    "lr-off-plan",
    "lr-gone-early",
    "lr-rises-again",
    "warmup-longer-than-run",
)
PRIOR = -2.5
TRIAL = "step the scheduler alone as the loop does: milliseconds"

FIRST = 25.0  # OneCycleLR's default div_factor: it starts at max_lr / 25


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    out = proofs(case, "scheduler-wrong-unit")
    match, shape, lr = case.get("lr_match"), case.get("lr_shape"), case.get("lr")
    if match is not None and match.verdict == "matches":
        return Excluded("the logged rate follows its plan")
    if match is not None and match.verdict == "paced" and "steps per epoch" in match.factor_names:
        out.append(Evidence(7.0, f"{match.why}: the steps of an epoch", "proof"))
    slow = [f for f in case.found("lr-off-plan", severity="ill") if f.numbers.get("pace", 1.0) < 0.5]
    if slow:
        out.append(Evidence(6.0, slow[0].summary, "pace", slow[0].places))
    if lr is None or shape is None:
        return out or Excluded("no learning rate is logged, and the code does not show it")
    epochs = lr.on("epoch")
    span = float(epochs[-1] - epochs[0]) if epochs is not None and len(epochs) else 0.0
    if shape.low_from is not None and span >= 5 and epochs is not None:
        gone = float(epochs[int((lr.at < shape.low_from).sum())])
        if gone <= 1.05 and shape.kind != "warming":
            text = f"the rate is below 1 % of its peak from epoch {gone:.2g} on, of {span:.3g}: laid out in epochs, stepped by batches"
            out.append(Evidence(5.0, text, "rate", (lr.place(int((lr.at < shape.low_from).sum())),)))
    top = number(case.knob("schedule.max_lr"))
    if top is not None and "onecycle" in _schedule(case) and shape.peak < 1.5 * top / FIRST and span >= 1:
        text = f"the one-cycle rate stays near its first value, {shape.peak:.3g} of a peak of {top:.3g}"
        out.append(Evidence(5.0, text, "rate", (lr.place(0),)))
    return out or Excluded("nothing shows another pace than the planned one")


def _schedule(case: Case) -> str:
    return str(case.knob("schedule.name") or "").lower().replace("_", "").replace("-", "")


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Step the scheduler in the unit it was laid out in.",
            (),
            "safe",
            "the logged rate equals the planned one at the end of the first epoch",
        ),
    )
