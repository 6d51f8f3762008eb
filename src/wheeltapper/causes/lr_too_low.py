"""The learning rate is far too low to learn in the time given.

## What happens
Each step moves the weights so little that the loss hardly leaves its start; often a wrong power of ten, or a
rate made for full fine-tuning used on a small adapter.

## How it shows
A loss that falls slowly and almost in a straight line, or stays at the level of an untrained model, with
little noise and without instability; a larger rate is better at every horizon.

## What else looks like this
Frozen parameters (nothing moves at all), shuffled labels (training fits, validation stays at chance), a
broken input, a schedule that never leaves its warm-up.

## When this is wrong
The training loss falls fast: then the rate is not the limit.

## Fix
Raise the rate by ten, then by three, until the loss becomes unstable, and take a third of that.

## Trial
Fork from the start with the rate at 1, 3, 10 and 30 times; a few hundred steps decide.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- Wu et al. 2018, Understanding Short-Horizon Bias in Stochastic Meta-Optimization (arXiv:1803.02021).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import same_on_every_batch
from wheeltapper.causes._settings import HIGH_ADAPTIVE, HIGH_PLAIN, number, plain_sgd, usual_rate
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series

ID = "lr-too-low"
AREA = "learning rate"
EXPLAINS = (
    "barely-learned",
    "worse-than-trivial",
    "at-chance",
    "at-prior",
    "stuck-from-start",
    "too-slow",
    "constant-metric",
    "plateau",
)
PRIOR = -1.0
TRIAL = "run from the start with the learning rate at 1, 3, 10 and 30 times; a few hundred steps decide"


# Rates that train from scratch or fine-tune with Adam lie between 1e-6 and 1e-2; adapters and SGD lie higher
# (defaults of the frameworks in config/dialects). Below a tenth of that low end a rate is suspicious by itself.
TINY = 1e-6
PLAIN = 1e-3  # plain SGD is run with 0.01 to 1: a hundredth of its middle is suspicious, a thousandth decisive
ADAPTER = 2e-5  # a LoRA adapter below this moves ten times slower than its papers' 1e-4 to 3e-4


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    if case.found("diverged", "not-finite", "collapsed", severity="ill"):
        return Excluded("the run moved far and broke: a rate that is too low does not do that")
    chance = case.found("at-chance", severity="ill")
    if chance and chance[0].numbers.get("fell"):
        return Excluded("it had learned before it fell to chance")
    out = []
    lr = case.get("lr")
    peak = float(np.nanmax(lr.values)) if lr is not None else case.knob("optimizer.lr")
    if isinstance(peak, (int, float)) and peak > 0:
        plain = plain_sgd(case)
        if plain and peak < PLAIN:
            out.append(Evidence(3.0, f"the rate is at most {peak:.2g}, far below what SGD is run with", "level"))
        elif peak < TINY:
            out.append(Evidence(4.0, f"the rate is at most {peak:.2g}, below what trains anything", "level"))
        elif peak < ADAPTER:
            out.append(Evidence(1.5, f"the rate is at most {peak:.2g}", "level"))
        elif not _fine_tuned(case) and peak < usual_rate(case) / 30:
            text = (
                f"the rate is at most {peak:.2g}; runs of this length, from scratch, have about {usual_rate(case):.2g}"
            )
            out.append(Evidence(1.5, text, "level"))
        elif peak > (5e-2 if plain else 1e-3):
            out.append(Evidence(-2.0, f"the rate reaches {peak:.2g}, which is not low for any optimizer", "level"))
    wanted = number(case.knob("optimizer.lr"))
    if lr is not None and wanted is not None and isinstance(peak, (int, float)) and 0 < peak < 0.1 * wanted:
        text = f"the settings say {wanted:.2g}: the rate that was set is not the one that ran"
        out.append(Evidence(-3.0, text, "settings"))
    train = case.get("train_loss")
    if train is not None and int(train.finite.sum()) >= 8:
        out += _shape(train)
    if train is not None and (guess := _far_above_guessing(case, train)):
        text = f"the loss, {float(np.nanmin(train.values)):.3g}, lies far above that of guessing ({guess:.2g}): no untrained network stands there"
        out.append(Evidence(-2.5, text, "start"))
    if same_on_every_batch(case):
        out.append(Evidence(-3.0, "the loss is exactly the same on every row: a low rate gives each batch its own", "same"))
    return out


def _far_above_guessing(case: Case, train: Series) -> float:
    """The loss of guessing at the accuracy that is held throughout, where the training loss never came near it; else 0."""
    for score in case.get("val_metrics") or ():
        held = score.values[score.finite] / (100.0 if score.unit == "%" else 1.0)
        if score.quantity != "accuracy" or score.part or not len(held) or not 0 < float(np.median(held)) < 1:
            continue
        guess = -float(np.log(np.median(held)))
        return guess if train.quantity == "loss" and float(np.nanmin(train.values)) > 4 * guess else 0.0
    return 0.0


def _fine_tuned(case: Case) -> bool:
    return bool(case.knob("finetune.from") or case.knob("model.lora_rank"))


def _shape(train: Series) -> list[Evidence]:
    x = train.values[train.finite]
    quarter = max(1, len(x) // 4)
    first, half, last = (
        float(np.median(part)) for part in (x[:quarter], x[len(x) // 2 - quarter // 2 :][:quarter], x[-quarter:])
    )
    moved = (first - last) / abs(first) if first else 0.0
    if moved < 0.02:
        return [Evidence(1.5, f"the training loss moved by {moved:.1%} over the whole record", "shape")]
    if moved > 0.6:
        return [Evidence(-3.0, f"the training loss fell by {moved:.0%}: it does learn", "shape")]
    if half - last > 0.4 * (first - last):
        return [
            Evidence(2.0, "the training loss falls in a straight line, as fast at the end as at the start", "shape")
        ]
    return []


def remedies(case: Case) -> tuple[Remedy, ...]:
    rate = case.knob("optimizer.lr")
    edits: tuple[Edit, ...] = ()
    text = "Raise the learning rate by ten."
    if isinstance(rate, (int, float)) and rate > 0:
        new = float(f"{rate * _how_far(case, float(rate)):.1g}")
        edits = (Edit("optimizer.lr", rate, new, f"{new / rate:,.0f} times the rate"),)
        text = f"Raise the learning rate to {new:g}, {new / rate:,.0f} times what it is."
    return (Remedy(text, edits, "try", "the loss falls visibly within a few hundred steps"),)


def _how_far(case: Case, rate: float) -> float:
    """By how much to raise the rate. While the loss hardly moves, what it moves by is in proportion to the rate, so
    the factor that would halve it follows from the record; ten at least, and not past what its optimizer is run with.
    """
    usual = usual_rate(case)
    if rate < usual / 30 and not _fine_tuned(case):
        return usual / rate  # so far off that the factor is told best by what everybody uses
    train = case.get("train_loss")
    if train is None or int(train.finite.sum()) < 8:
        return 10.0
    x = train.values[train.finite]
    quarter = max(1, len(x) // 4)
    first, last = float(np.median(x[:quarter])), float(np.median(x[-quarter:]))
    moved = (first - last) / abs(first) if first else 0.0
    highest = (HIGH_PLAIN if plain_sgd(case) else HIGH_ADAPTIVE) / rate
    return max(10.0, min(0.5 / max(moved, 1e-3), highest))
