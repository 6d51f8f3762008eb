"""The evaluation does not measure the model that is trained.

## What happens
Training works, but what is evaluated is something else: other weights, another mode, other class indices,
boxes in other units, another normalisation, a data set that does not belong.

## How it shows
The training loss falls as it should while the validation score stays at zero or at chance, or lies below
what no model at all would get.

## What else looks like this
A model that memorises (its validation loss rises, its score is poor but above zero), an input pipeline that
is broken for both (training does not learn either).

## When this is wrong
The training loss does not fall: then learning is broken, not the evaluation.

## Fix
Evaluate training items through the validation code: the score must be close to the training score.

## Trial
Run the validation code on a few training batches, with the last checkpoint: minutes, and it decides.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- delafer/traiNNer-redux, commits 069b6d59 and 95d13e03: validation on images shrunk to 64 pixels, and its
  repair.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "eval-broken"
AREA = "evaluation"
ABOUT = "evaluation"
EXPLAINS = (
    "never-left-zero", "at-chance", "below-baseline", "impossible-value", "constant-metric", "val-left-behind",
    "gap-at-guessing", "declined-after-peak",
)  # fmt: skip
SHOWS = {"gap-at-start": "high", "val-left-behind": "seen", "held-out-gain": "low", "train-gain": "in"}
PROVED_BY = ("wrong-axis",)
TRIAL = "evaluate training items through the validation code with the last checkpoint: minutes, and it decides"
REMEDY = Remedy(
    "Mend the evaluation before touching the optimizer: run it on training items and compare.",
    (),
    "safe",
    "on training items the validation code gives the training score",
)
