"""The inputs are not brought to unit scale.

## What happens
Pixels of 0 to 255 or columns in thousands make activations and gradients that much larger. The first layer's steps are
out of proportion to all others, and one wide column drowns the rest.

## How it shows
The first loss and the first gradient norms are many times those of an untrained model; the loss then falls fast and
stays far above what the task allows, or breaks.

## What else looks like this
Initial weights that are too large; a learning rate that is too high.

## When this is wrong
The first loss is that of an untrained model, or the network begins with a normalisation layer.

## Fix
Subtract the mean and divide by the spread of the training set, feature by feature.

## Trial
Print mean and spread of one batch as it enters the model: about 0 and 1.

## References
- LeCun, Bottou, Orr and Müller 1998, Efficient BackProp, section 4.3.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "input-not-normalised"
AREA = "data"
ABOUT = "learning"
EXPLAINS = (
    "first-loss-odd", "diverged", "not-finite", "spiked", "barely-learned", "too-slow", "plateau", "at-chance",
    "grad-norm-growth",
)  # fmt: skip
SHOWS = {"first-loss": "high", "gradient-size": "high"}
PROVED_BY = ("input-scaled-beyond",)
TRIAL = "print mean and spread of one batch as it enters the model"
REMEDY = Remedy(
    "Normalise the inputs by the mean and spread of the training set.",
    (),
    "safe",
    "the first loss is that of an untrained model",
)
