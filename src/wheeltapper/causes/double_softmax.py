"""Softmax is applied twice: the loss cannot fall below a floor.

## What happens
The network ends in a softmax and the loss applies another. Probabilities lie between 0 and 1, so the cross-entropy of
C classes cannot fall below ln(1 + (C - 1)/e).

## How it shows
The training loss flattens exactly at that floor while accuracy rises; the total gain is under one nat.

## What else looks like this
Label smoothing and mixup have floors of their own; a plateau elsewhere is something else.

## When this is wrong
The loss is below the floor.

## Fix
Feed logits to the loss.

## Trial
Sum the outputs before the loss over the classes: 1 everywhere is the proof.

## References
- PyTorch, torch.nn.CrossEntropyLoss (unnormalised logits; the mean over ignored targets only is NaN).
- Cross-entropy of probabilities cannot fall below ln(1 + (C-1)/e): 1.461 for 10 classes, 5.910 for 1000.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "double-softmax"
AREA = "loop"
EXPLAINS = ("plateau", "stuck-from-start", "at-chance", "at-prior", "too-slow", "loss-moves-too-little")
PRIOR = -3.0
TRIAL = "sum the outputs before the loss over the classes: 1 everywhere is the proof"


NEAR = 0.02


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    out = proofs(case, "double-softmax")
    out += [Evidence(6.0, f.summary, "floor", f.places) for f in case.found("loss-moves-too-little")]
    classes = case.knob("model.classes")
    train: Series | None = case.get("train_loss")
    if isinstance(classes, (int, float)) and classes >= 2 and train is not None and train.finite.any():
        floor = math.log(1 + (float(classes) - 1) / math.e)
        level = float(np.median(train.values[train.finite][-max(1, len(train) // 10) :]))
        low = float(np.min(train.values[train.finite]))
        if low < floor * (1 - NEAR):
            return Excluded(f"the loss falls to {low:.3g}, below the floor {floor:.3g} of a double softmax")
        if abs(level / floor - 1) < NEAR:
            out.append(
                Evidence(
                    5.0,
                    f"the loss sits at {level:.4g}; a double softmax over {classes:g} classes cannot go below {floor:.4g}",
                    "floor",
                )
            )
    return out or Excluded("the number of classes is not known, and the code does not show it")


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (Remedy("Feed logits to the loss.", (), "safe", "the loss falls below the floor"),)
