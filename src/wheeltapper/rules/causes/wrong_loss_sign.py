"""The loss is maximised.

## What happens
A sign error: each step makes the loss worse, at any learning rate.

## How it shows
The loss rises from the very first step and never falls, smoothly.

## What else looks like this
A learning rate that is too high first falls or oscillates; a curriculum rises by design.

## When this is wrong
The loss fell at any time.

## Fix
Mend the sign; or pass maximize=False.

## Trial
One small step along the gradient: the batch's loss must fall.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- A small step along the gradient must lower the loss of its own batch.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "wrong-loss-sign"
AREA = "loop"
ABOUT = "learning"
EXPLAINS = (
    "diverged", "slow-rise", "not-finite", "above-start", "declined-after-peak", "at-chance", "barely-learned",
    "below-baseline", "collapsed", "train-val-gap", "spiked",
)  # fmt: skip
SHOWS = {"train-gain": "low", "above-start": "seen", "explosion": "high"}
PROVED_BY = ("loss-negated", "loss-maximised", "adversarial-labels", "kl-sign", "preference-swapped", "reward-negated", "teacher-negated")
TRIAL = "take one small step on one batch: its loss must fall"
REMEDY = Remedy("Mend the sign of the loss.", (), "safe", "one small step lowers the loss of its own batch")
