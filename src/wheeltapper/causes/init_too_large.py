"""The initial weights are too large.

## What happens
Outputs of an untrained network should be small. Large ones make a confident wrong start: the first loss lies
far above that of a constant answer, the first gradients are huge, and deep stacks multiply both.

## How it shows
The first loss is far above ln C (or ln V), by half the variance of the logits; instability in the first part of
the run.

## What else looks like this
A learning rate that is too high without warm-up (the first loss is right, the next ones are not), a loss that
is summed instead of averaged, pretrained weights with a foreign head.

## When this is wrong
The first loss is ln C: the logits start small. Or the run was stable for long before it broke.

## Fix
A smaller standard deviation (sqrt(2/(5 width)) for transformers), zero for the last layer.

## Trial
Compute the loss of one batch before the first step: it must be ln C within a few percent.

## References
- BigScience, lessons learned (bigscience-workshop/bigscience, train/lessons-learned.md).
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.simulate.baselines import logit_std_of

ID = "init-too-large"
AREA = "model"
EXPLAINS = ("diverged", "not-finite", "spiked", "first-loss-odd", "too-slow", "grad-norm-growth")
PRIOR = -4.0
TRIAL = "the loss of one batch before the first step: it must be ln C within a few percent"

FIRST = 10  # steps: a first row later than this has left the initial point
LATE = 0.2  # of the record: what broke after so much stable training was not the start


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    train: Series | None = case.get("train_loss")
    classes = case.knob("model.classes") or case.knob("vocab_size")
    if train is None or train.quantity != "loss" or not isinstance(classes, (int, float)) or classes < 2:
        return []
    if case.knob("finetune.from") or case.knob("resume.from"):
        return Excluded("the run starts from trained weights")
    task = case.get("task")
    if task is not None and task.diffusion:
        return Excluded("the loss is no cross entropy, so ln C says nothing about its start")
    if train.clock != "step" or train.at[0] > FIRST or not train.finite[0]:
        return []
    first, expected = float(train.values[0]), math.log(classes)
    if first < 1.1 * expected:  # s²/2 of logits with s = 1 is 0.5 nats: a tenth of ln C for a hundred classes
        return Excluded(f"the first loss is {first:.3g} and ln {classes:g} is {expected:.3g}: the logits start small")
    onset = case.since(train.clock)
    if onset is not None and len(train) > 10 and onset - train.at[0] > LATE * (train.at[-1] - train.at[0]):
        return Excluded("the run was stable for long before it broke")
    spread = logit_std_of(first, int(classes))
    if first > 1.5 * expected and spread is not None:
        return [
            Evidence(4.5, f"the first loss is {first:.3g}; ln {classes:g} is {expected:.3g}: logits of spread {spread:.2g}",
                     "first", (train.place(0),))
        ]  # fmt: skip
    return []


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Start the last layer at zero, and scale the rest by the width.", (), "try", "the first loss is ln C"),
    )  # fmt: skip
