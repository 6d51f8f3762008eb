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

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import same_on_every_batch, series_like
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "output-collapse"
AREA = "model"
EXPLAINS = ("collapsed", "at-chance", "at-prior", "constant-metric", "stuck-from-start")
PRIOR = -4.0
TRIAL = "the variance of the outputs over a thousand validation items: zero decides"

SPREAD = r"(output|feature|feat|embed\w*|z|logit|pred\w*|repr\w*)s?[/_. ]*(std|var|variance|rank|entropy|diversity)"
GONE = 0.02  # of its start: fifty times less spread is no sharpening


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    spreads = series_like(case.run, SPREAD, least=5)
    out = []
    for series in spreads:
        x = series.values[series.finite]
        k = max(1, len(x) // 10)
        # A record that starts in the collapse has no first level; its highest one stands for it.
        top, last = float(np.max(x)), float(np.median(x[-k:]))
        if top > 0 and 0 <= last < GONE * top:
            out.append(Evidence(6.0, f"{series.name} sank from {top:.3g} to {last:.3g}", "spread", (series.place(0),)))
    if spreads and not out:
        return Excluded(f"{spreads[0].name} holds its size: outputs differ between inputs")
    if same := same_on_every_batch(case):
        text = "different batches cost exactly the same: the output does not depend on the input"
        out.append(Evidence(5.0, text, "same", same.places))
    accuracy = [f for f in case.found("constant-metric") if "accuracy" in (f.series or "")]
    loss: Series | None = case.get("val_loss")
    if accuracy and loss is not None and accuracy[0].onset is not None:
        tail = loss.values[loss.finite & (loss.at >= accuracy[0].onset)]
        if len(tail) >= 5 and np.ptp(tail) > 0:
            out.append(
                Evidence(2.5, "accuracy repeats exactly while the validation loss still moves: one class is predicted",
                         "constant", accuracy[0].places)
            )  # fmt: skip
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Return to a checkpoint before the spread of the outputs sank.", (), "advice",
               "the spread of the outputs holds its size"),
    )  # fmt: skip
