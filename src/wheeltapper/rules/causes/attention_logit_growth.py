"""The attention logits (or the output logits) grow without limit.

## What happens
Queries and keys grow until the softmax puts all weight on one position; its gradient vanishes there and is
huge nearby. At high learning rates it happens in small models too.

## How it shows
The largest attention logit climbs steadily, or the entropy of attention sinks to zero, well before the loss
breaks.

## What else looks like this
A rate that is too high (the logits are how it shows in transformers), bad data, an overflow in fp16.

## When this is wrong
The logits are flat up to the onset, or queries and keys are normalised.

## Fix
Normalise queries and keys; a z-loss of 1e-4 for the output; a lower rate.

## Trial
Fork before the onset with normalised queries and keys, three seeds each.

## References
- Wortsman et al. 2023, Small-scale proxies for large-scale Transformer training instabilities
  (arXiv:2309.14322).
- Zhai et al. 2023, Stabilizing Transformer Training by Preventing Attention Entropy Collapse
  (arXiv:2303.06296).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "attention-logit-growth"
AREA = "model"
ABOUT = "learning"
EXPLAINS = ("diverged", "spiked", "slow-rise", "not-finite", "grad-norm-growth")
SHOWS = {"gradient-growth": "high", "train-loss-lost": "high"}
TRIAL = "fork before the onset with normalised queries and keys, three seeds each"
REMEDY = Remedy(
    "Normalise queries and keys, or add a z-loss, from a checkpoint before the onset.",
    (),
    "try",
    "the largest logit stays in its band",
)
