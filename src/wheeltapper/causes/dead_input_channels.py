"""The inputs carry nothing: a channel, or all of them, is constant.

## What happens
A wrong path, a failed decode, a mask or a normalisation by zero turns the inputs into constants. The model
can then learn the frequency of the labels and nothing else.

## How it shows
Training and validation both stay at the entropy of the labels, at any learning rate; the standard deviation
of the inputs is zero.

## What else looks like this
Labels that do not belong to their inputs (training can still memorise them), a learning rate of nearly
zero, frozen weights.

## When this is wrong
The training loss sinks below the entropy of the labels: then the model tells its inputs apart.

## Fix
Look at the tensor that enters the model, not at the file: per channel mean, spread, share of zeros.

## Trial
Replace the inputs by zeros for a few hundred steps: an unchanged loss curve decides.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import ends, series_like
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "dead-input-channels"
AREA = "data"
EXPLAINS = ("at-chance", "at-prior", "stuck-from-start")
PRIOR = -4.0  # rare beside a wrong rate or wrong labels, and seldom visible in a log
TRIAL = "replace the inputs by zeros for a few hundred steps: an unchanged curve decides"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    chance = case.found("at-chance", severity="ill")
    if chance and chance[0].numbers.get("fell"):
        return Excluded("the run was above chance at some time, with the same inputs")
    train: Series | None = case.get("train_loss")
    levels = ends(train) if train is not None and train.quantity == "loss" else None
    out = []
    classes = chance[0].numbers.get("classes", 0.0) if chance else 0.0
    if levels is not None and classes >= 2:
        prior = math.log(classes)
        # Without inputs no model gets below the entropy of the labels; a tenth leaves room for an uneven prior.
        if levels[1] < 0.9 * prior:
            return Excluded(f"the training loss is {levels[1]:.3g}, below ln {classes:.0f}: the inputs are told apart")
        if abs(levels[1] / prior - 1) < 0.05:
            out.append(Evidence(1.0, f"the training loss ends at ln {classes:.0f} as well", "training"))
    for spread in series_like(case.run, r"(input|pixel|image)s?[/_. ]*(ch\w*[/_. ]*)?(std|var)"):
        if np.all(spread.values[spread.finite] == 0):
            out.append(Evidence(7.0, f"{spread.name} is exactly 0 on every row", "proof", (spread.place(0),)))
        else:
            out.append(Evidence(-2.0, f"{spread.name} is not zero", "inputs"))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Print mean and spread per channel of the tensor that enters the model, and mend the loader.",
            (),
            "safe",
            "the training loss falls below the entropy of the labels",
        ),
    )
