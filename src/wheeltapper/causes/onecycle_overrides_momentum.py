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

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._settings import adaptive
from wheeltapper.finding import Evidence, Remedy

ID = "onecycle-overrides-momentum"
AREA = "schedule"
EXPLAINS = ("diverged", "not-finite", "spiked", "oscillating")
PRIOR = -3.0
TRIAL = "the rise of the schedule with cycle_momentum=False, same seed"

LOW, HIGH = 0.85, 0.95  # torch's defaults


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    name = str(case.knob("schedule.name") or "").lower().replace("_", "")
    found = case.audited("onecycle-overrides-momentum")
    shape = case.get("lr_shape")
    if not found and "onecycle" not in name and not (shape is not None and shape.kind == "one_cycle"):
        return Excluded("no one-cycle schedule is at work, as far as is known")
    if adaptive(case):
        return Excluded("the optimizer is adaptive: the cycle moves beta1, which hardly matters")
    logged = [s for s in case.run.series.values() if s.quantity == "momentum" and int(s.finite.sum()) >= 2]
    declared = case.knob("optimizer.momentum")
    out = []
    if not isinstance(declared, (int, float)) or not 0 <= declared < 1:
        return Excluded("the configured momentum is not known")
    if logged:
        top = float(np.nanmax(logged[0].values))
        if abs(top - declared) < 0.005:
            return Excluded(f"the logged momentum is the configured {declared:g}")
        out.append(Evidence(1.0, f"the logged momentum reaches {top:.3g}, the settings say {declared:g}", "momentum"))
    elif not found:
        return Excluded("neither code nor log show what momentum was used")
    else:
        out.append(Evidence(0.5, found[0].summary, "momentum", found[0].places))
    # The long-run step is lr/(1 - m): by how much it grew, even where the cycle is at its lowest.
    longer = (1 - declared) / (1 - LOW)
    if longer < 2:
        return Excluded(f"the cycle changes the step by {longer:.2g} at most times at the peak: no cause of trouble")
    out.append(Evidence(4.0 if longer > 4 else 2.0, f"steps are {longer:.2g} times as long at the peak", "size"))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Pass cycle_momentum=False to OneCycleLR.",
            (),
            "try",
            "the momentum in the optimizer is the configured one, and the loss passes the peak of the rate",
        ),
    )
