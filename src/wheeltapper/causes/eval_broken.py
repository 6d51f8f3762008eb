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

import math
from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import fell, led_away
from wheeltapper.causes.overfitting import BY_HEART
from wheeltapper.finding import Evidence, Remedy

ID = "eval-broken"
AREA = "evaluation"
EXPLAINS = (
    "never-left-zero", "at-chance", "below-baseline", "impossible-value", "constant-metric", "val-left-behind",
    "gap-at-guessing", "declined-after-peak",
)  # fmt: skip
PRIOR = -1.0
TRIAL = "evaluate training items through the validation code with the last checkpoint: minutes, and it decides"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    chance = case.found("at-chance", severity="ill")
    if chance and chance[0].numbers.get("fell"):
        return Excluded("the score had been good with the same evaluation")
    if not case.found(*EXPLAINS[:-1], severity="ill"):
        return Excluded("the score was good before it fell, with the same evaluation")
    out = []
    below = case.found("below-baseline", severity="ill")
    if below and any("input itself" in f.summary for f in below):
        out.append(Evidence(1.5, "the score lies below that of the input itself", "level"))
    elif below:
        out.append(
            Evidence(6.0, "the score lies below what plain interpolation gives, from the first evaluation on", "level")
        )
    if below and (away := led_away(case)):
        out.append(Evidence(-4.0, f"{away}: it measures what is trained", "away"))
    lost = case.found("gap-at-guessing", severity="ill")
    if lost and lost[0].numbers["held"] > 3 * math.exp(-lost[0].numbers["guess"]):
        out.append(Evidence(-3.0, f"{lost[0].numbers['held']:.0%} right is far above guessing: it measures something", "score"))
    if lost and lost[0].numbers["trained"] >= BY_HEART:
        out.append(Evidence(-2.0, "the training set is known by heart, which makes such a gap by itself", "heart"))
    drop = fell(case.get("val_loss"))
    if drop is not None and drop > 0.3:
        out.append(Evidence(-4.0, f"the validation loss fell by {drop:.0%} with the same evaluation", "validation"))
    val = case.get("val_loss")
    if val is not None and case.found("val-left-behind", severity="ill"):
        steps = np.diff(val.values[val.finite])
        if float(np.mean(steps <= 0)) > 0.85:
            out.append(Evidence(-3.0, "the validation loss improves at nearly every evaluation, if by little", "crawl"))
    train = case.get("train_loss")
    if train is not None and int(train.finite.sum()) >= 8:
        x = train.values[train.finite]
        k = max(1, len(x) // 10)
        start, end = float(np.median(x[:k])), float(np.median(x[-k:]))
        gained = (start - end) / abs(start) if start else 0.0
        chance = case.found("at-chance", "at-prior")
        floor = math.log(chance[0].numbers["classes"]) if chance and chance[0].numbers.get("classes", 0) > 1 else 0.0
        if end > 0.9 * floor > 0:
            out.append(Evidence(-3.0, "the training loss is at the level of guessing as well", "training"))
        elif gained > 0.3:
            out.append(Evidence(4.0, f"the training loss fell by {gained:.0%}, so something was learned", "training"))
        elif gained < 0.05:
            out.append(Evidence(-4.0, "the training loss did not fall either", "training"))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Mend the evaluation before touching the optimizer: run it on training items and compare.",
            (),
            "safe",
            "on training items the validation code gives the training score",
        ),
    )
