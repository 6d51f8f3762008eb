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

import numpy as np

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import HIGH_ADAPTIVE, HIGH_PLAIN, plain_sgd, usual_rate

ID = "lr-too-low"
AREA = "learning rate"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "worse-than-trivial", "at-chance", "at-prior", "stuck-from-start", "too-slow",
    "constant-metric", "plateau",
)  # fmt: skip
SHOWS = {"rate-size": "low", "travel": "low", "train-gain": "low"}
FORBIDS = {"diverged": "seen", "not-finite": "seen", "collapsed": "seen", "rate-size": "high"}
PROVED_BY = ("rate-is-zero",)
TRIAL = "run from the start with the learning rate at 1, 3, 10 and 30 times; a few hundred steps decide"


def _fine_tuned(case: Case) -> bool:
    return bool(case.knob("finetune.from") or case.knob("model.lora_rank"))


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
