"""The model gives the same output for every input.

## What happens
The representation shrinks to a point or to a few directions: self-supervised objectives allow it, regression to
the mean favours it, and after a divergence it is where classifiers land.

## How it shows
The spread of the outputs or of the features over a batch sinks to zero; the score is constant to all digits
after it had moved, while the loss still moves.

## What else looks like this
A dead network (no gradient), class imbalance (the largest class is right often), an evaluation that is cached.

## When this is wrong
Predictions vary between inputs.

## Fix
Self-supervised: stop-gradient, predictor, variance term, centring. Else: find what broke before; a collapse is
mostly the end of another story.

## Trial
The variance of the outputs over a thousand validation items: zero decides.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "output-collapse"
AREA = "model"
ABOUT = "learning"
EXPLAINS = ("collapsed", "at-chance", "at-prior", "constant-metric", "stuck-from-start")
SHOWS = {"spread-of-embeddings": "low", "identical-scores": "high", "skill": "low"}
FORBIDS = {"spread-of-embeddings": "in"}
PROVED_BY = ("views-only-attract",)
TRIAL = "the variance of the outputs over a thousand validation items: zero decides"
REMEDY = Remedy(
    "Return to a checkpoint before the spread of the outputs sank.",
    (),
    "advice",
    "the spread of the outputs holds its size",
)
