"""Inputs and labels do not belong together.

## What happens
A shuffle of one without the other, a wrong index file, a label map that differs between training and validation.

## How it shows
Validation stays at chance; training stays at chance too, or sinks slowly by memorising; the loss starts at and stays
near the entropy of the classes. Where targets are pictures or numbers, the training loss falls to what can be known
without the right partner, and the held-out score sinks below that of the untrained network.

## What else looks like this
A learning rate of nearly zero (nothing moves), dead inputs, an evaluation that is broken while training learns.

## When this is wrong
Training accuracy is far above chance while validation is not: then the evaluation or its label map is at fault.

## Fix
Look at twenty items with their labels; overfit one batch, then two.

## Trial
Accuracy under the best permutation of the classes: far above chance means a permuted map.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "labels-shuffled"
AREA = "data"
ABOUT = "learning"
EXPLAINS = ("barely-learned", "at-chance", "stuck-from-start", "collapsed", "declined-after-peak", "below-baseline")
SHOWS = {"skill": "low", "at-chance": "seen"}
PROVED_BY = ("rows-apart",)
TRIAL = "look at twenty items with their labels, then overfit one batch: minutes"
REMEDY = Remedy(
    "Check that inputs and targets are paired: look at a few of each as the loader gives them.",
    (),
    "try",
    "one small batch is learned by heart, and the loss leaves the level of guessing",
)
