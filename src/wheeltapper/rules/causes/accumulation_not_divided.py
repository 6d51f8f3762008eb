"""Gradients are summed over micro-batches instead of averaged.

## What happens
The loss of each micro-batch is back-propagated without dividing by their number n, so the gradient is n times
that of the whole batch. SGD then takes steps n times too long, and a clip threshold bites n times sooner.

## How it shows
Unstable training that is stable without accumulation; the logged training loss is n times the validation loss
from the start.

## What else looks like this
A rate that is too high for the larger batch, a sum logged over micro-batches while the gradient is right.

## When this is wrong
The optimizer is adaptive (Adam's step does not depend on the gradient's size), or the loss is a sum on purpose.

## Fix
Divide the loss by n before the backward pass.

## Trial
Compare the gradient norm of one batch with that of the same samples in n micro-batches: they must be equal.

## References
- huggingface/transformers pull request 34191 and issues 34263 and 35207 (loss too large by a constant
  factor).
- Executed with torch 2.13: a loss times 10 or 1e-3 leaves Adam's result as it was, up to its epsilon.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "accumulation-not-divided"
AREA = "batch"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "at-chance", "collapsed", "declined-after-peak", "diverged", "not-finite", "spiked",
    "oscillating", "always-clipped",
)  # fmt: skip
SHOWS = {"gap-at-start": "low"}
PROVED_BY = ("loss-not-divided",)
TRIAL = "compare the gradient norm of one batch with that of the same samples in micro-batches"
REMEDY = Remedy(
    "Divide the loss by the number of micro-batches.",
    (),
    "safe",
    "the gradient norm falls by that number, and the logged loss with it",
)
