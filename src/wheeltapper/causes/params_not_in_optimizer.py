"""A part of the model was never given to the optimizer.

## What happens
A head that was replaced after the optimizer was built, modules in a plain Python list, a parameter group
that was forgotten: the part gets gradients and is never stepped.

## How it shows
The weight norm of the part repeats to all digits while its gradient norm is above zero and the rest moves.
The loss falls as far as the rest can carry it, then stays.

## What else looks like this
Frozen parameters (no gradient reaches them), a learning rate of zero for one group, weights in bf16 that
round each step away.

## When this is wrong
The part's weights change, or no gradient reaches it.

## Fix
Build the optimizer after the last change of the model; compare its parameters with those that want a gradient.

## Trial
One step: which tensors that have a gradient did not change?

## References
- PyTorch, torch/optim/optimizer.py (load_state_dict).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._look import in_optimizer, still_weights, weight_norms
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "params-not-in-optimizer"
AREA = "model"
EXPLAINS = (
    "barely-learned", "at-chance", "at-prior", "stuck-from-start", "plateau", "constant-metric", "too-slow", "weights-stand-still",
    "average-stands-still",
)  # fmt: skip
PRIOR = -5.0  # only weights and gradients side by side, or the code, can show it
TRIAL = "one step: list the tensors that have a gradient and did not change"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    still = still_weights(case.run)
    if weight_norms(case.run) and not still:
        return Excluded("every weight norm that is logged moves")
    out = proofs(case, "params-not-in-optimizer", bits=9.0, hint=7.0)
    for found in case.found("weights-stand-still"):
        out += [Evidence(8.0, found.summary, "proof", found.places), *in_optimizer(case)]
    for weight, grad in still:
        if grad is not None and np.any(grad.values[grad.finite] > 0):
            out.append(
                Evidence(9.0, f"{weight.name} never changes while its gradient norm is {_level(grad):.3g}", "proof",
                         (weight.place(0),))
            )  # fmt: skip
    lr: Series | None = case.get("lr")
    if out and lr is not None and not np.any(lr.values[lr.finite] > 0):
        return Excluded("the learning rate is zero throughout, which holds every weight")
    return out


def _level(series: Series) -> float:
    return float(np.median(series.values[series.finite]))


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Build the optimizer after the model is complete.", (), "safe", "every weight norm moves"),
    )  # fmt: skip
