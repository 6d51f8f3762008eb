"""One class dominates, and the model predicts it always.

## What happens
The cheapest way to lower the loss is to learn the frequency of the classes. With a rare positive class a
constant answer is already nearly right, and the gradient of the rare items drowns.

## How it shows
Accuracy stands at the share of the largest class, exactly, while recall, F1, IoU or the correlation of the
rare class stay at zero.

## What else looks like this
A dead network and a collapsed one also give one answer; labels that never match; a threshold that is wrong.

## When this is wrong
The scores that count every class alike rise, or the classes are balanced.

## Fix
Judge by a balanced score; weigh or resample the classes; start the last bias at the log odds of the prior.

## Trial
Print the histogram of the predictions on the validation set: one class decides.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "class-imbalance"
AREA = "data"
ABOUT = "learning"
EXPLAINS = ("at-prior", "constant-metric", "never-left-zero")
SHOWS = {"at-prior": "seen", "identical-scores": "high"}
TRIAL = "print the histogram of the predictions on the validation set: one class decides"
REMEDY = Remedy(
    "Judge by a score that counts every class alike, and weigh or resample the classes.",
    (),
    "try",
    "recall of the rare class leaves zero",
)
