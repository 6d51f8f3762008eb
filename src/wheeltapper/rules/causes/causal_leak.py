"""The model sees the tokens it has to predict.

## What happens
Without a causal mask (or with targets that are the inputs themselves) the answer stands in the input one place further
on. The model learns to copy it, and what it generates is noise.

## How it shows
The loss falls to a fraction of a nat within a few hundred steps, in training and validation alike, far below what text
allows.

## What else looks like this
A data set that repeats itself, or a tiny one that is learned by heart: then the validation loss stays high.

## When this is wrong
The loss ends where language models end (about 0.9 nats a character, 2 to 4 a token), or the task is copying.

## Fix
Mask attention to later positions (is_causal=True), and shift the targets by one exactly once.

## Trial
Change the last token of an input and compare the outputs at all earlier positions: they must not move.

## References
- Vaswani et al. 2017, Attention Is All You Need (arXiv:1706.03762), section 3.2.3.
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io): backprop to chart dependencies.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "causal-leak"
AREA = "objective"
ABOUT = "learning"
EXPLAINS = ("loss-exactly-zero", "memorised", "val-below-train", "impossible-value")
SHOWS = {"language-loss": "low", "gap-at-end": "in"}
FORBIDS = {"language-loss": "in"}
PROVED_BY = ("causal-mask-missing", "labels-not-shifted")
TRIAL = "change the last token of an input: the outputs at earlier positions must not move"
REMEDY = Remedy(
    "Mask the attention to later positions and shift the targets by one.",
    (),
    "safe",
    "the loss ends at a level that text allows",
)
