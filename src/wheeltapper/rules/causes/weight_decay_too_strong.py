"""Weight decay pulls the weights to zero faster than the gradients rebuild them.

## What happens
With decoupled decay each step shrinks the weights by lr times decay; over 1/(lr x decay) steps everything learned before
is forgotten.

## How it shows
The weight norm shrinks, training loss drifts up or stays high, worst while the learning rate is high.

## What else looks like this
A learning rate that is too high; a regulariser elsewhere.

## When this is wrong
The decay is of the usual size: 1e-5 to 0.1 with AdamW, 1e-5 to 1e-3 with SGD.

## Fix
A third of the decay.

## Trial
Fork with a third of the decay, equal sum of lr x decay compared.

## References
- Wang and Aitchison 2024, How to set AdamW's weight decay as you scale model and dataset size
  (arXiv:2405.13698).
- Loshchilov and Hutter 2019, Decoupled Weight Decay Regularization (arXiv:1711.05101).
"""

from __future__ import annotations

import math

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import adaptive, length_of_run, number

ID = "weight-decay-too-strong"
AREA = "model"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "diverged", "slow-rise", "declined-after-peak", "stuck-from-start", "at-chance", "too-slow",
    "plateau", "collapsed", "constant-metric",
)  # fmt: skip
SHOWS = {"decay-work": "high", "decay-size": "high"}
PROVED_BY = ("weight-decay-too-strong",)
TRIAL = "fork with a third of the weight decay, three seeds each"


def remedies(case: Case) -> tuple[Remedy, ...]:
    decay = number(case.knob("optimizer.weight_decay"))
    edits: tuple[Edit, ...] = ()
    if decay is not None:
        new, why = min((decay / 10, "a tenth"), (_lasting(case), "three runs long until it forgets"))
        edits = (Edit("optimizer.weight_decay", decay, float(f"{new:.2g}"), why),)
    return (Remedy("Cut the weight decay.", edits, "try", "the training loss falls further at the same rate"),)


def _lasting(case: Case) -> float:
    """The decay at which a third of the weights, at most, is forgotten over the run: lr x decay of them at a step."""
    rate, total = number(case.knob("optimizer.lr")), length_of_run(case, "steps")
    if rate is None or total is None:
        return math.inf
    momentum = 0.0 if adaptive(case) is not False else number(case.knob("optimizer.momentum")) or 0.0
    return (1 - min(momentum, 0.99)) / (3 * rate * total)
