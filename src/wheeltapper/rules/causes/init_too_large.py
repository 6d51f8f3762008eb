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

from wheeltapper.finding import Remedy

ID = "init-too-large"
AREA = "model"
ABOUT = "learning"
EXPLAINS = ("diverged", "not-finite", "spiked", "first-loss-odd", "too-slow", "grad-norm-growth")
SHOWS = {"first-loss": "high", "first-loss-odd": "seen"}
FORBIDS = {"first-loss": "in"}
PROVED_BY = ("init-too-wide",)
TRIAL = "the loss of one batch before the first step: it must be ln C within a few percent"
REMEDY = Remedy("Start the last layer at zero, and scale the rest by the width.", (), "try", "the first loss is ln C")
