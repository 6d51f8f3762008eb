"""Gradients are summed over micro-batches instead of averaged.

## What happens
The loss of each micro-batch is back-propagated without dividing by their number n, so the gradient is n times
that of the whole batch. SGD then takes steps n times too long, and a clip threshold bites n times sooner.

## How it shows
Unstable training that is stable without accumulation; the logged training loss is n times the validation loss
from the start.

## What else looks like this
A rate that is too high for the larger batch, a sum logged over micro-batches while the gradient is right.

## When this is wrong
The optimizer is adaptive (Adam's step does not depend on the gradient's size), or the loss is a sum on purpose.

## Fix
Divide the loss by n before the backward pass.

## Trial
Compare the gradient norm of one batch with that of the same samples in n micro-batches: they must be equal.

## References
- huggingface/transformers pull request 34191 and issues 34263 and 35207 (loss too large by a constant
  factor).
- Executed with torch 2.13: a loss times 10 or 1e-3 leaves Adam's result as it was, up to its epsilon.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._settings import adaptive, number
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "accumulation-not-divided"
AREA = "batch"
EXPLAINS = (
    "barely-learned",
    "at-chance",
    "collapsed",
    "declined-after-peak",
    "diverged",
    "not-finite",
    "spiked",
    "oscillating",
    "always-clipped",
)
PRIOR = -3.0
TRIAL = "compare the gradient norm of one batch with that of the same samples in micro-batches"

FEW = 3  # evaluations
LIKE = 0.15  # training and validation loss differ by about this much early in a healthy run


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    out = proofs(case, "loss-not-divided", hint=4.0)
    steps = number(case.knob("batch.accumulation"))
    if steps is None or steps <= 1:
        return out or Excluded("no accumulation is configured")
    if adaptive(case):
        return Excluded("the optimizer is adaptive: its steps do not depend on the gradient's size")
    train: Series | None = case.get("train_loss")
    val: Series | None = case.get("val_loss")
    if train is not None and val is not None and train.quantity == val.quantity:
        at = val.on(train.clock)
        if at is not None and int(val.finite.sum()) >= FEW:
            ratio = _early_ratio(train, val, at)
            if ratio is not None and abs(ratio / steps - 1) < LIKE:
                text = f"the training loss is {ratio:.3g} times the validation loss early on; {steps:g} micro-batches are accumulated"
                out.append(Evidence(3.5, text, "ratio"))
            elif ratio is not None and abs(ratio - 1) < LIKE and not out:
                return Excluded("training and validation loss agree early on: the logged loss is divided")
    return out or Excluded("neither code nor losses show it")


def _early_ratio(train: Series, val: Series, at: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float | None:
    """Training over validation loss around the first evaluations, before a gap can have opened."""
    ratios = []
    for spot, value in zip(at[val.finite][:FEW], val.values[val.finite][:FEW], strict=True):
        near = train.values[train.finite][np.argsort(np.abs(train.at[train.finite] - spot), kind="stable")[:5]]
        if len(near) and value > 0:
            ratios.append(float(np.median(near)) / float(value))
    return float(np.median(ratios)) if len(ratios) == FEW else None


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Divide the loss by the number of micro-batches.",
            (),
            "safe",
            "the gradient norm falls by that number, and the logged loss with it",
        ),
    )
