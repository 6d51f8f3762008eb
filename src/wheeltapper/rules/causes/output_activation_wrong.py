"""The last activation does not fit the loss or the range of the targets.

## What happens
A ReLU before targets that can be negative, a sigmoid before values above one, a tanh before a cross-entropy, a softmax
over a single output: what the network can say does not hold the answer.

## How it shows
The loss falls to a floor above zero and stays there from early on, for training and validation alike; predictions sit
at the edge of their range.

## What else looks like this
Labels that are partly wrong set a floor, too; a softmax that is applied twice has a floor of its own.

## When this is wrong
The training loss goes to almost nothing: then the range holds the targets.

## Fix
No activation before a loss on logits or a regression; scale the targets into the range of one that must stay.

## Trial
Learn one batch by heart: the loss stops at its floor instead of going to zero.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io): overfit one batch.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "output-activation-wrong"
AREA = "model"
ABOUT = "learning"
EXPLAINS = (
    "plateau", "at-prior", "at-chance", "stuck-from-start", "loss-moves-too-little", "barely-learned",
    "worse-than-trivial", "constant-metric",
)  # fmt: skip
SHOWS = {"late-gain": "low", "skill": "low", "train-skill": "low"}
FORBIDS = {"memorised": "seen", "loss-exactly-zero": "seen"}
PROVED_BY = ("output-does-not-fit-the-loss", "output-cannot-reach")
TRIAL = "learn one batch by heart: the loss stops at its floor instead of going to zero"
REMEDY = Remedy(
    "Take the last activation off, or use the one whose range holds the targets.",
    (),
    "safe",
    "one batch is learned by heart to almost zero",
)
