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

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._settings import adaptive, number, world_size
from wheeltapper.finding import Edit, Evidence, Remedy

ID = "lr-scaled-by-world-size"
AREA = "learning rate"
EXPLAINS = ("barely-learned", "diverged", "not-finite", "collapsed", "spiked", "at-chance", "lr-off-plan")
PRIOR = -2.5
TRIAL = "one device at the configured rate, through the end of the warm-up"

EQUAL = 0.01  # logs print three digits or more


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    out = proofs(case, "lr-scaled-twice")
    world = world_size(case)
    if world is not None and world <= 1:
        return Excluded("one process trains: there is nothing to scale by")
    ratio = _ratio(case)
    if ratio is not None and abs(ratio - 1) < EQUAL:
        return Excluded("the logged rate is the configured one")
    if ratio is not None and world is not None:
        lr = case.get("lr")
        places = () if lr is None else (lr.place(int(np.nanargmax(lr.values))),)
        if abs(ratio / world**2 - 1) < EQUAL:
            text = f"the logged peak is {ratio:.4g} times the configured rate: the {world:g} processes, twice"
            out.append(Evidence(8.0, text, "proof", places))
        elif abs(ratio / world - 1) < EQUAL:
            text = f"the logged peak is {ratio:.4g} times the configured rate, as many as there are processes"
            # Sound recipes do this once on purpose, so it is no more than strong.
            out.append(Evidence(3.0, text, "ratio", places))
    if not out:
        return Excluded("nothing shows that the rate was scaled")
    if adaptive(case):
        out.append(Evidence(1.0, "the linear rule is for SGD; here the optimizer is adaptive", "rule"))
    return out


def _ratio(case: Case) -> float | None:
    """Logged over configured: by the whole plan where there is one, else peak against peak after the warm-up."""
    match = case.get("lr_match")
    if match is not None and match.verdict in ("matches", "scaled"):
        return float(match.ratio)
    lr, shape = case.get("lr"), case.get("lr_shape")
    configured = number(case.knob("optimizer.lr"))
    if lr is None or shape is None or configured is None or shape.still_warming:
        return None
    peak = float(np.nanmax(lr.values))
    return peak / configured if peak > 0 else None


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
