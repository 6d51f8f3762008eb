"""Validation looks better than training.

## What it sees
A validation loss below the training loss, or a validation accuracy above the training accuracy, over most
of the record.

## Why it matters
It is usually normal, and usually read as leakage or a bug.

## How it decides
A note whenever it holds on more than half of the record. It is never ill by itself: dropout, augmentation,
mixup and label smoothing act in training only, and the training mean runs over an epoch in which the model
still improved.

## When it is wrong
Leakage exists; it needs a test of its own (the training items through the validation pipeline).

## References
- Keras FAQ, "Why is my training loss much higher than my testing loss?".
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Series

ID = "val-below-train"
LIVE = True


def look(train_loss: Series, val_loss: Series) -> Answer:
    track = train_loss.on(val_loss.clock)
    if track is None or train_loss.quantity != val_loss.quantity:
        return Unknown("training and validation have no common clock", ("val/loss",))
    good = train_loss.finite & np.isfinite(track)
    mine = val_loss.finite
    if not np.any(val_loss.values[mine] != 0):
        return Unknown("the validation loss is printed as 0 throughout: it is not computed", ("val/loss",))
    if good.sum() < 2 or mine.sum() < 3:
        return Unknown("too few values to compare", ("val/loss",))
    x = np.interp(val_loss.at[mine], track[good], train_loss.values[good])
    below = val_loss.values[mine] < x
    share = float(below[len(below) // 5 :].mean()) if len(below) >= 5 else float(below.mean())
    if share < 0.5:
        return Clear(f"validation lies below training on {share:.0%} of the evaluations")
    middle = f"median {np.median(val_loss.values[mine]):.4g} against {np.median(x):.4g}"
    text = f"{val_loss.name} lies below {train_loss.name} on {share:.0%} of the evaluations ({middle})"
    return seen(
        ID,
        val_loss,
        text,
        severity="note",
        grade="is",
        onset=0,
        share=share,
        ratio=float(x[-1] / max(val_loss.values[mine][-1], 1e-300)),
    )


CASES = {
    "finding": {"train/loss": [2.0, 1.8, 1.6, 1.5], "val/loss": [1.5, 1.2, 1.0, 0.9]},
    "clear": {"train/loss": [2.0, 1.8, 1.6, 1.5], "val/loss": [2.1, 1.9, 1.8, 1.8]},
    "unknown": {"train/loss": [2.0, 1.8]},
}
