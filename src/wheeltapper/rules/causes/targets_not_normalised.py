"""The targets of a regression are not brought to unit scale.

## What happens
Targets of thousands ask the last layer for weights of thousands, and steps of the size of the learning rate take that
many updates to get there. Squared errors of millions break the clip, the loss scale and the rate.

## How it shows
The loss starts at the square of the targets' size and falls for very long, mostly by learning their mean; the explained
variance stays near zero.

## What else looks like this
A learning rate that is too low, and a run that is too short: both are slow at any size of the targets.

## When this is wrong
Targets have a spread of about one, or the loss is a classification.

## Fix
Subtract the mean of the training targets and divide by their spread; undo it when predicting.

## Trial
A short run on scaled targets: the explained variance must leave zero within the first epoch.

## References
- LeCun, Bottou, Orr and Müller 1998, Efficient BackProp, section 4.5.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "targets-not-normalised"
AREA = "data"
ABOUT = "learning"
EXPLAINS = (
    "first-loss-odd", "too-slow", "barely-learned", "worse-than-trivial", "diverged", "not-finite",
    "always-clipped", "at-prior",
)  # fmt: skip
SHOWS = {"skill": "low", "still-falling": "high", "first-loss-odd": "seen"}
PROVED_BY = ("targets-not-scaled",)
TRIAL = "a short run on scaled targets: the explained variance leaves zero within the first epoch"
REMEDY = Remedy(
    "Scale the targets by the mean and spread of the training set.", (), "safe", "the first loss is about one"
)
