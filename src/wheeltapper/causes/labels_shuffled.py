"""Inputs and labels do not belong together.

## What happens
A shuffle of one without the other, a wrong index file, a label map that differs between training and validation.

## How it shows
Validation stays at chance; training stays at chance too, or sinks slowly by memorising; the loss starts at and stays
near the entropy of the classes. Where targets are pictures or numbers, the training loss falls to what can be known
without the right partner, and the held-out score sinks below that of the untrained network.

## What else looks like this
A learning rate of nearly zero (nothing moves), dead inputs, an evaluation that is broken while training learns.

## When this is wrong
Training accuracy is far above chance while validation is not: then the evaluation or its label map is at fault.

## Fix
Look at twenty items with their labels; overfit one batch, then two.

## Trial
Accuracy under the best permutation of the classes: far above chance means a permuted map.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import through
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "labels-shuffled"
AREA = "data"
EXPLAINS = ("barely-learned", "at-chance", "stuck-from-start", "collapsed", "declined-after-peak", "below-baseline")
PRIOR = -1.5
UPDATES = 500  # the warm-up of most recipes
TRIAL = "look at twenty items with their labels, then overfit one batch: minutes"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    chance = case.found("at-chance", severity="ill")
    away = [] if chance else _led_away(case)
    if away:
        return away
    if not chance or chance[0].numbers.get("fell"):
        return Excluded("the run was above chance at some time, with the same labels")
    out = []
    lr: Series | None = case.get("lr")
    peak = float(np.nanmax(lr.values)) if lr is not None else case.knob("optimizer.lr")
    if isinstance(peak, (int, float)) and peak < 1e-5:
        out.append(Evidence(-1.5, f"the rate is so low ({peak:.2g}) that nothing could be learned anyway", "rate"))
    train: Series | None = case.get("train_loss")
    if train is not None and int(train.finite.sum()) >= 8:
        x = train.values[train.finite]
        fell = 1 - float(np.median(x[-max(1, len(x) // 10) :]) / np.median(x[: max(1, len(x) // 10)]))
        if fell > 0.3:
            out.append(
                Evidence(1.0, f"the training loss fell by {fell:.0%} while validation stayed at chance", "training")
            )
        elif fell < 0.05:
            out.append(Evidence(0.5, "the training loss stays at the entropy of the classes as well", "training"))
    return out


def _led_away(case: Case) -> list[Evidence]:
    """A score that ends a tenth below its first evaluation while the training loss falls on: training leads away from what
    is measured, and what is learned by heart does not go below what hardly trained weights give."""
    below = case.found("below-baseline", severity="ill")
    for f in case.found("collapsed", "declined-after-peak", severity=None if below else "ill"):
        series = case.run.series.get(f.series or "")
        if series is None or series.better != "up" or not series.finite.any() or "last" not in f.numbers:
            continue
        first, last = float(series.values[series.finite][0]), f.numbers["last"]
        train: Series | None = case.get("train_loss")
        if last >= 0.9 * first or train is None or not _hardly_trained(train, series):
            continue
        if through(train, case.since(train.clock)) == "falls":
            text = f"{series.name} ends at {last:.4g}, below its first evaluation ({first:.4g}), while the training loss falls on"
            return [Evidence(4.0, text, "away", (series.place(0),))]
    return []


def _hardly_trained(train: Series, score: Series) -> bool:
    """At the first evaluation a few hundred updates had been made, and the training loss had most of its fall before it:
    nothing was there yet to be unlearned. A fine-tuned model is at its best there, and overfits from there on."""
    at = score.on(train.clock)
    if at is None or int(train.finite.sum()) < 8 or train.clock != "step" or at[score.finite][0] > UPDATES:
        return False
    x, first = train.values[train.finite], float(at[score.finite][0])
    early = x[train.at[train.finite] <= first]
    start, end = float(np.median(x[:3])), float(np.median(x[-max(3, len(x) // 10) :]))
    return len(early) > 0 and start > end and start - float(np.median(early[-3:])) < 0.5 * (start - end)


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Check that inputs and targets are paired: look at a few of each as the loader gives them.",
            (),
            "try",
            "one small batch is learned by heart, and the loss leaves the level of guessing",
        ),
    )
