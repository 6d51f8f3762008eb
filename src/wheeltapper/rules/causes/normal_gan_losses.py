"""Losses of a GAN that do not fall are expected.

## What happens
Two networks play against each other: each loss measures the other's skill as much as its own, and at equilibrium
both stand still above zero.

## How it shows
The losses of generator and discriminator wander around a level, or one of them rises, for the whole run.

## What else looks like this
A discriminator that has won (its loss sinks to zero), a mode collapse (only samples or scores show it).

## When this is wrong
The discriminator's loss sinks to zero.

## Fix
Nothing to mend. Judge by samples, or by FID on enough of them.

## Trial
FID of two checkpoints with equal numbers of samples.

## References
- Goodfellow et al. 2014, Generative Adversarial Networks (arXiv:1406.2661).
- Mao et al. 2017, Least Squares Generative Adversarial Networks (arXiv:1611.04076): D is 0.5 at
  equilibrium, its loss 0.25.
"""

from __future__ import annotations

from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._look import fell

ID = "normal-gan-losses"
AREA = "adversarial"
NORMAL = True


def expect(case: Case) -> str:
    if not case.get("task").adversarial or case.found("discriminator-wins"):
        return ""
    flat = [
        s.name
        for s in case.run.series.values()
        if s.quantity in ("gan_d", "gan_g") and (drop := fell(s)) is not None and drop < 0.1
    ]
    if not flat:
        return ""
    return f"{flat[0]} that does not fall is expected here: losses of a GAN measure a balance, not quality"
