"""The target is among the inputs.

## What happens
A column that was computed from the label, a window that reaches into what is to be forecast, or the label itself is
given to the network. It learns to copy, and knows nothing where the answer is not known yet.

## How it shows
Held-out scores are nearly perfect from the first epochs on, in training and validation alike.

## What else looks like this
An easy task; held-out items that are also in the training set, which needs epochs to show.

## When this is wrong
Held-out data from later in time, or from another source, scores as well.

## Fix
Drop the column, or end the input window before the target begins; build features from what is known at that time.

## Trial
Permute one input column after the other and score: the leak is the one without which nothing is left.

## References
- Kaufman, Rosset and Perlich 2011, Leakage in Data Mining (KDD).
- Kapoor and Narayanan 2023, Leakage and the reproducibility crisis in machine-learning-based science (Patterns 4).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "target-leak"
AREA = "data"
ABOUT = "learning"
EXPLAINS = ("val-below-train", "loss-exactly-zero", "impossible-value", "memorised")
SHOWS = {"held-out-gain": "high", "skill": "in", "gap-at-end": "in"}
FORBIDS = {"at-chance": "seen", "gap-at-guessing": "seen", "train-gain": "low"}
PROVED_BY = ("target-in-input", "tokens-not-hidden")
TRIAL = "permute one input column after the other: the leak is the one without which nothing is left"
REMEDY = Remedy(
    "Take the target, and everything computed from it, out of the inputs.",
    (),
    "safe",
    "the held-out score falls to what the task allows",
)
