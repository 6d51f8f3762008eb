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

from wheeltapper.finding import Remedy

ID = "frozen-parameters"
AREA = "model"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "at-chance", "at-prior", "stuck-from-start", "plateau", "constant-metric", "too-slow",
    "weights-stand-still", "average-stands-still",
)  # fmt: skip
SHOWS = {"weights-stand-still": "seen", "train-gain": "low"}
FORBIDS = {"weights-stand-still": "clear"}
PROVED_BY = ("params-frozen", "all-frozen", "gradient-cut", "step-missing", "zero-grad-before-step", "features-cut-off")
TRIAL = "hash the tensors before and after a hundred steps: those that are equal are frozen"
REMEDY = Remedy("Thaw the frozen weights, at a lower rate than the head.", (), "try", "every weight norm moves")
