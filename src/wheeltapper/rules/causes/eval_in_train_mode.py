"""Validation runs in training mode.

## What happens
Dropout stays on and batch norm uses the statistics of the batch, and updates them with validation data. The
score belongs to another model than the one that is saved.

## How it shows
The validation score is worse and noisier than the model, and depends on the batch size of the evaluation.

## What else looks like this
Batch norm over very few items (training fine, validation erratic), a small validation set, EMA weights that lag.

## When this is wrong
The same items give the same score in both modes, or the model has no layer with modes.

## Fix
model.eval() before the evaluation, model.train() after it.

## Trial
Evaluate the last checkpoint in both modes on the same items: minutes, and it decides.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- PyTorch, torch.nn.Module.eval.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "eval-in-train-mode"
AREA = "evaluation"
ABOUT = "evaluation"
EXPLAINS = ("train-val-gap", "oscillating", "val-spike", "val-swings", "val-left-behind")
SHOWS = {"gap-under-dropout": "high"}
PROVED_BY = ("val-in-train-mode", "evaluated-in-train-mode")
TRIAL = "evaluate the last checkpoint in both modes on the same items: minutes, and it decides"
REMEDY = Remedy(
    "Call eval() before the evaluation and train() after it.",
    (),
    "safe",
    "two evaluations of one checkpoint agree to all digits",
)
