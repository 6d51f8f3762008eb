"""Weights that should learn are frozen.

## What happens
requires_grad is off, a backbone was frozen for fine-tuning and never thawed, a detach cuts the graph: the
weights get no gradient.

## How it shows
Weight norms repeat to all digits without a gradient; the training loss is exactly the same on every row, or
stays where what is left can carry it.

## What else looks like this
A part that the optimizer was never given (it has gradients), a learning rate of zero or far too low.

## When this is wrong
Freezing is meant and the rest suffices: fine-tuning a head or an adapter.

## Fix
Thaw the weights, or train what is left at its own rate; check requires_grad after loading.

## Trial
Hash the tensors before and after one hundred steps: those that are equal are frozen.

## References
- PyTorch, torch/optim/optimizer.py (load_state_dict).
- Executed with torch 2.13: a gradient of None is skipped by the optimizer, a zero one is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._look import OFF, in_optimizer, settings_like, still_weights, weight_norms
from wheeltapper.config.dialects.schema import place_of
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "frozen-parameters"
AREA = "model"
EXPLAINS = (
    "barely-learned", "at-chance", "at-prior", "stuck-from-start", "plateau", "constant-metric", "too-slow", "weights-stand-still",
    "average-stands-still",
)  # fmt: skip
PRIOR = -4.0
TRIAL = "hash the tensors before and after a hundred steps: those that are equal are frozen"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    still = still_weights(case.run)
    if weight_norms(case.run) and not still:
        return Excluded("every weight norm that is logged moves")
    out = proofs(case, "params-frozen", hint=6.0)
    for found in case.found("weights-stand-still"):
        out.append(Evidence(7.0, found.summary, "proof", found.places))
        out += [replace(e, bits=-e.bits) for e in in_optimizer(case)]
    for weight, grad in still:
        if grad is None or not np.any(grad.values[grad.finite] > 0):
            what = "and no gradient reaches it" if grad is not None else "(its gradient is not logged)"
            out.append(
                Evidence(8.0 if grad is not None else 4.0, f"{weight.name} never changes {what}",
                         "proof" if grad is not None else "weights", (weight.place(0),))
            )  # fmt: skip
    train: Series | None = case.get("train_loss")
    held = [f for f in case.found("constant-metric", severity="ill") if train is not None and f.series == train.name]
    lr: Series | None = case.get("lr")
    moving = lr is not None and bool(np.any(lr.values[lr.finite] > 0))
    if held and train is not None and held[0].onset == train.at[0] and moving:
        out.append(
            Evidence(3.0, "the training loss is the same on every row though the rate is above zero", "loss",
                     held[0].places)
        )  # fmt: skip
    frozen = [leaf for leaf in settings_like(case.run, r"(^|[._])(freez\w*|frozen\w*)") if leaf.value not in OFF]
    if frozen and frozen[0].value not in (-1, "-1", [], "no"):
        leaf = frozen[0]
        out.append(Evidence(1.5, f"{leaf.dotted} is {leaf.value!r}", "setting", (place_of(leaf),)))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Thaw the frozen weights, at a lower rate than the head.", (), "try", "every weight norm moves"),
    )  # fmt: skip
