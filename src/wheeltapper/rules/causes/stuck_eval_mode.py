"""The model stays in evaluation mode after the first evaluation.

## What happens
eval() is called before the validation and train() never again. From then on dropout is off and batch norm uses frozen
statistics that no longer follow the weights.

## How it shows
From the first evaluation on the training loss drops below its course and the gap to validation grows faster than in the
first epoch; with batch norm the loss may jump.

## What else looks like this
Overfitting, which is what follows; dropout that is set to zero.

## When this is wrong
The network has neither dropout nor batch norm: then nothing changes.

## Fix
Call train() at the start of every epoch.

## Trial
Print model.training in the second epoch, inside the loop.

## References
- PyTorch, torch/nn/modules/module.py (train, eval).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "stuck-eval-mode"
AREA = "loop"
ABOUT = "learning"
EXPLAINS = ("train-val-gap", "declined-after-peak", "memorised", "spiked", "diverged", "val-swings")
SHOWS = {"gap-under-dropout": "high", "gap-growth": "high"}
PROVED_BY = ("train-mode-not-restored",)
TRIAL = "print model.training inside the loop of the second epoch"
REMEDY = Remedy(
    "Call train() at the start of every epoch.",
    (),
    "safe",
    "the training loss keeps its course through the first evaluation",
)
