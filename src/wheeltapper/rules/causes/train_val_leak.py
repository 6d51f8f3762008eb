"""Validation items are in the training set, or the answer is in the input.

## What happens
Duplicates across the splits, frames of one video or slices of one patient on both sides, a column that
holds the target: the score measures memory.

## How it shows
Validation follows training step for step, with nothing that would explain it; a strictly new set scores far
lower.

## What else looks like this
Validation better than training is usually normal: dropout, augmentation, mixup and label smoothing act in
training only, and the training value is a mean over an epoch in which the model still improved.

## When this is wrong
Training items through the validation code score better than validation items: then nothing leaks by copy.

## Fix
Split by group (subject, scene, document), remove duplicates, test on items collected later.

## Trial
Hash the items of both splits, exactly and by near-duplicates: minutes, and it decides.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- Keras FAQ, "Why is my training loss much higher than my testing loss?".
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "train-val-leak"
AREA = "data"
ABOUT = "evaluation"
EXPLAINS = ("val-below-train",)
SHOWS = {"val-below-train": "seen", "score-gap": "in"}
FORBIDS = {"gap-at-guessing": "seen"}
PROVED_BY = ("split-overlap", "held-out-in-loss", "held-out-statistics", "validation-on-training-data")
TRIAL = "hash the items of both splits, exactly and by near-duplicates: minutes, and it decides"
REMEDY = Remedy(
    "Split by group and remove duplicates before judging anything by this score.",
    (),
    "advice",
    "the score falls to that of a strictly new set",
)
