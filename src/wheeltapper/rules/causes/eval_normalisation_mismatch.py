"""Validation images are normalised in another way than training images.

## What happens
Another mean and spread, 0 to 255 instead of 0 to 1, BGR instead of RGB: the network sees inputs at validation
that it never saw in training.

## How it shows
The training loss falls as it should while the score on held-out data is at zero, at chance, or far below.

## What else looks like this
Other faults of the evaluation: weights, class indices, boxes in other units, a wrong mode.

## When this is wrong
Both pipelines state the same mean, spread and order of channels.

## Fix
One definition of the normalisation, used by both pipelines.

## Trial
Training items through the validation pipeline with the last checkpoint; then with the channels swapped.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "eval-normalisation-mismatch"
AREA = "evaluation"
ABOUT = "evaluation"
EXPLAINS = (
    "never-left-zero", "at-chance", "train-val-gap", "below-baseline", "val-left-behind", "gap-at-guessing",
    "declined-after-peak",
)  # fmt: skip
SHOWS = {"gap-at-start": "high", "score-gap-at-start": "high", "train-gain": "in"}
PROVED_BY = ("val-normalised-otherwise", "evaluated-otherwise", "double-scaling")
TRIAL = "training items through the validation pipeline with the last checkpoint, then with channels swapped: minutes"
REMEDY = Remedy(
    "Use one normalisation for both pipelines.",
    (),
    "safe",
    "on training items the validation code gives the training score",
)
