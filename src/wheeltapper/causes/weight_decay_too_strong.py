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

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._settings import adaptive, length_of_run, number
from wheeltapper.finding import Edit, Evidence, Remedy

ID = "weight-decay-too-strong"
AREA = "model"
EXPLAINS = (
    "barely-learned",
    "diverged",
    "slow-rise",
    "declined-after-peak",
    "stuck-from-start",
    "at-chance",
    "too-slow",
    "plateau",
    "collapsed",
    "constant-metric",
)
PRIOR = -3.0
TRIAL = "fork with a third of the weight decay, three seeds each"


ADAPTIVE = ("adam", "lamb", "lion", "ada")


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    decay, rate = case.knob("optimizer.weight_decay"), case.knob("optimizer.lr")
    if not isinstance(decay, (int, float)) or decay <= 0:
        return Excluded("no weight decay is configured, as far as is known")
    name = str(case.knob("optimizer.name") or "").lower()
    usual = 0.3 if any(word in name for word in ADAPTIVE) else 5e-3
    told = proofs(case, "weight-decay-too-strong")
    if told:
        return told
    if decay <= usual:
        return Excluded(f"a weight decay of {decay:g} is of the usual size")
    out = [
        Evidence(
            3.0,
            f"the weight decay is {decay:g}, {decay / usual:.2g} times the upper end of what is usual",
            "size",
            (case.knobs.place("optimizer.weight_decay"),) if case.knobs else (),
        )
    ]
    if isinstance(rate, (int, float)) and rate > 0 and 1 / (rate * decay) < 500:
        out.append(Evidence(2.0, f"lr x decay forgets everything within {1 / (rate * decay):.0f} steps", "horizon"))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    decay = case.knob("optimizer.weight_decay")
    if not isinstance(decay, (int, float)):
        return ()
    new, why = decay / 10, "a tenth"
    rate, total = number(case.knob("optimizer.lr")), length_of_run(case, "steps")
    if rate is not None and total is not None:
        # lr x decay is the share of the weights that is forgotten at a step: over the run, a third of them at most.
        momentum = 0.0 if adaptive(case) is not False else number(case.knob("optimizer.momentum")) or 0.0
        lasting = (1 - min(momentum, 0.99)) / (3 * rate * total)
        if lasting < new:
            new, why = lasting, "three runs long until it forgets"
    return (
        Remedy(
            "Cut the weight decay.",
            (Edit("optimizer.weight_decay", decay, float(f"{new:.2g}"), why),),
            "try",
            "the training loss falls further at the same rate",
        ),
    )
