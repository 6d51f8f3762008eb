"""The labels do not reach the loss: no target ever matches.

## What happens
Empty or misplaced label files, wrong paths, a wrong class list or coordinate format: the loader finds no
target, so the terms of the loss that need one are exactly zero.

## How it shows
A term that needs targets (boxes, masks, matched classes) is exactly 0 in every epoch, and the score on held-out data is
zero or falls to it, because the model learns that there is nothing.

## What else looks like this
A term that cannot apply (a class loss with one class) is zero in a healthy run, whose score is good.

## When this is wrong
The score is good: then the zero term is by design.

## Fix
Look at one training batch with its targets drawn on it; check the label folder and its format.

## Trial
Count the targets of the first hundred items: none, or nearly none, decides.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- huggingface/trl issues 5662 and 6668 (every label masked after truncation).
- ultralytics/ultralytics issue 490 (batches without labels).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "labels-broken"
AREA = "data"
ABOUT = "learning"
EXPLAINS = ("loss-exactly-zero", "declined-after-peak", "collapsed", "never-left-zero", "train-val-gap")
SHOWS = {"loss-exactly-zero": "seen", "held-out-gain": "low"}
PROVED_BY = ("ctc-blank-is-a-letter", "loss-on-the-unmasked")
TRIAL = "count the targets of the first hundred training items: none, or nearly none, decides"
REMEDY = Remedy(
    "Draw the targets of one training batch on its images; mend the labels.",
    (),
    "safe",
    "every term of the loss is above zero",
)
