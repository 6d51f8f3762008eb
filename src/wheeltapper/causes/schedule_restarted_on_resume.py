"""The learning rate schedule was planned anew at a resume.

## What happens
The run is resumed with another number of epochs, or without the scheduler's state: the schedule is computed
again over the new length, and the rate jumps up. What had been annealed is shaken up.

## How it shows
The rate jumps at a resume against its own course; the score falls there and does not regain its best.

## What else looks like this
A lost optimizer state gives a short bump of the loss, without a jump of the rate; warm restarts jump by plan.

## When this is wrong
The jump was intended, as a second phase with its own budget.

## Fix
Resume with the same total and the scheduler's state; or start a new, short cool-down from the checkpoint.

## Trial
Resume from the same checkpoint with the old total: the score must hold.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- PyTorch, torch/optim/optimizer.py (load_state_dict).
- OPT-175B logbook (facebookresearch/metaseq, projects/OPT/chronicles).
"""

from __future__ import annotations

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy

ID = "schedule-restarted-on-resume"
AREA = "schedule"
EXPLAINS = ("restart-jump", "starts-late", "lr-rises-again", "declined-after-peak")
PRIOR = -1.5
TRIAL = "resume from the same checkpoint with the old total and the scheduler's state: the score must hold"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    out = []
    for finding in case.found("restart-jump"):
        ratio = finding.numbers.get("ratio", 0.0)
        if ratio > 1.5 or 0 < ratio < 1 / 1.5:
            out.append(Evidence(6.0, finding.summary, "jump", finding.places))
    code = [f for f in case.audited("resume-incomplete") if "schedul" in f.summary.lower()]
    if code and case.found("restart-jump"):
        out.append(Evidence(4.0, code[0].summary, "code", code[0].places))
    late = case.found("starts-late")
    shape = case.get("lr_shape")
    if late and late[0].numbers.get("dropped"):
        out.append(Evidence(2.0, late[0].summary, "seam", late[0].places))
    if late and shape is not None and shape.ends_at is not None and shape.decay is not None:
        done = late[0].numbers.get("first", 0.0) / shape.ends_at if shape.ends_at else 0.0
        if 0.1 < done < 0.9 and shape.peak == shape.first:
            out.append(
                Evidence(
                    1.5,
                    f"the rate of this part is one of a plan that ends at {shape.ends_at:.4g}, begun anew at the resume",
                    "plan",
                )
            )
    return out or Excluded("no resume is in the record, so none can have restarted the schedule")


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Resume with the same total length and the scheduler's state, from the checkpoint before the jump.",
            (),
            "safe",
            "the rate continues its course and the score holds",
        ),
    )
