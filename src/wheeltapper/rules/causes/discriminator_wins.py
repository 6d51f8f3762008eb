"""The discriminator is too strong for its generator.

## What happens
It tells real from generated without error, so its loss vanishes and with it the gradient that teaches the
generator.

## How it shows
The discriminator's loss sinks to zero, the generator's adversarial loss sits at the value of "never fooled".

## What else looks like this
A generator that diverged; two data sets that differ by a trivial mark (size, border, compression), which any
discriminator finds.

## When this is wrong
Losses of a GAN need not fall: only a discriminator at zero is the bad sign.

## Fix
Weaken it: fewer steps or a lower rate for it, noise or augmentation on its inputs, a gradient penalty.

## Trial
Fork with the discriminator's learning rate at a quarter: its loss must rise, and the generator's fall.

## References
- Goodfellow et al. 2014, Generative Adversarial Networks (arXiv:1406.2661).
- Mao et al. 2017, Least Squares Generative Adversarial Networks (arXiv:1611.04076): D is 0.5 at
  equilibrium, its loss 0.25.
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "discriminator-wins"
AREA = "adversarial"
ABOUT = "learning"
EXPLAINS = ("discriminator-wins", "collapsed", "declined-after-peak", "diverged")
SHOWS = {"discriminator-level": "low", "discriminator-wins": "seen"}
FORBIDS = {"discriminator-level": "in"}
PROVED_BY = ("generator-in-discriminator-loss",)
TRIAL = "fork with the discriminator's learning rate at a quarter: its loss must rise and the generator's fall"


def remedies(case: Case) -> tuple[Remedy, ...]:
    rate = case.knob("optimizer.lr_d")
    edits: tuple[Edit, ...] = ()
    if isinstance(rate, (int, float)) and rate > 0:
        edits = (Edit("optimizer.lr_d", rate, float(f"{rate / 4:.3g}"), "a quarter"),)
    return (
        Remedy(
            "Quarter the discriminator's learning rate, or augment its inputs.",
            edits,
            "try",
            "the discriminator's loss rises towards its equilibrium",
        ),
    )
