"""Adam's second moment lags behind gradients that suddenly grow.

## What happens
Adam's steps are normalised by a slow average of squared gradients. When gradients grow faster than that average
follows (1/(1 - beta2) steps), the first steps are far too long, and the loss spikes a few steps later.

## How it shows
A spike long after the start, at a rate that had been fine, with the gradient norm jumping one to eight steps
before the loss; beta2 at 0.99 or more.

## What else looks like this
A rate that is too high (it breaks at the peak of the schedule), a bad batch (norm and loss jump on the same
row), fp16 overflow (the loss scale falls).

## When this is wrong
beta2 is 0.95 or less, the optimizer has no second moment, or the log is too sparse to see which came first.

## Fix
A lower beta2, update clipping (StableAdamW, Adafactor), or clipping of the gradient norm.

## Trial
Replay from before the spike with beta2 at 0.95, same data: the spike must shrink or go.

## References
- Wortsman et al. 2023, Stable and low-precision training for large-scale vision-language models
  (arXiv:2304.13013).
- BigScience, lessons learned (bigscience-workshop/bigscience, train/lessons-learned.md).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "second-moment-lag"
AREA = "learning rate"
ABOUT = "learning"
EXPLAINS = ("spiked", "diverged")
SHOWS = {"spiked": "seen"}
TRIAL = "replay from before the spike with beta2 at 0.95, same data and order"


def remedies(case: Case) -> tuple[Remedy, ...]:
    betas = case.knob("optimizer.betas")
    edits: tuple[Edit, ...] = ()
    if isinstance(betas, list) and len(betas) > 1:
        edits = (Edit("optimizer.betas", betas, [betas[0], 0.95], "follows within 20 steps"),)
    return (
        Remedy("Lower beta2 to 0.95, or clip updates.", edits, "try", "the norm may jump, the loss no longer does"),
    )
