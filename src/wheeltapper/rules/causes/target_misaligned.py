"""The targets are moved or turned against their inputs.

## What happens
The image is flipped and its mask is not, the series is shifted by a step too many, the tokens are paired with the ones
behind them. Each target is a real one, of the wrong place.

## How it shows
The training loss falls to a level well above what the task allows and stays; the held-out score rises a little, then
stands far below what others reach.

## What else looks like this
Labels that are shuffled at random: nothing at all is learned from those on held-out data.

## When this is wrong
A few training items with their targets, drawn as the loader gives them, fit together.

## Fix
Apply every geometric change to input and target together; shift in one place only.

## Trial
Draw ten items with their targets after all augmentation, or shift the target by −2 to 2 and score each.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io): visualize just before the net.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "target-misaligned"
AREA = "data"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "at-chance", "plateau", "declined-after-peak", "below-baseline", "worse-than-trivial",
    "stuck-from-start",
)  # fmt: skip
SHOWS = {"skill": "low", "held-out-gain": "low"}
PROVED_BY = ("targets-skip", "positives-elsewhere", "picture-turned-alone")
TRIAL = "score the targets shifted by −2 to 2 places: the best is not 0"
REMEDY = Remedy(
    "Draw inputs with their targets as the loader gives them, and move both together.",
    (),
    "safe",
    "the training loss falls below its old floor",
)
