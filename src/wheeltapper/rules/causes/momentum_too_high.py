"""The momentum remembers too many updates.

## What happens
A step is the sum of 1 / (1 − momentum) past gradients: 0.9 adds ten of them up, 0.999 a thousand. The steps become that
many times as long and that much out of date, so the weights swing around what they are pulled to.

## How it shows
The loss rises or swings in slow waves of the length of that memory; a lower rate only makes the waves slower.

## What else looks like this
A learning rate that is too high breaks within a few steps, without waves; gradients that are never cleared are a
momentum of 1.

## When this is wrong
The memory is below about fifty updates, or the rate was lowered with it so that lr / (1 − momentum) is the usual one.

## Fix
Momentum 0.9. If 0.99 is wanted, divide the learning rate by ten.

## Trial
Two short runs with the same lr / (1 − momentum): if the one at 0.9 falls smoothly, the memory was too long.

## References
- Sutskever, Martens, Dahl and Hinton 2013, On the importance of initialization and momentum in deep learning (ICML).
- Goh 2017, Why Momentum Really Works (distill.pub/2017/momentum).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "momentum-too-high"
AREA = "optimizer"
ABOUT = "learning"
EXPLAINS = (
    "diverged", "oscillating", "not-finite", "above-start", "spiked", "slow-rise", "barely-learned", "val-swings",
    "collapsed",
)  # fmt: skip
SHOWS = {"momentum-memory": "high"}
FORBIDS = {"momentum-memory": "in"}
TRIAL = "two short runs with the same lr / (1 − momentum), one at a momentum of 0.9"
USUAL = 0.9


def remedies(case: Case) -> tuple[Remedy, ...]:
    momentum, betas = case.knob("optimizer.momentum"), case.knob("optimizer.betas")
    edits: tuple[Edit, ...] = ()
    if isinstance(momentum, (int, float)) and momentum > USUAL:
        edits = (Edit("optimizer.momentum", momentum, USUAL, "a memory of ten updates"),)
    elif isinstance(betas, list) and len(betas) > 1 and isinstance(betas[0], (int, float)) and betas[0] > USUAL:
        edits = (Edit("optimizer.betas", betas, [USUAL, *betas[1:]], "a memory of ten updates"),)
    return (Remedy("Set the momentum to 0.9.", edits, "try", "the loss falls without slow waves"),)
