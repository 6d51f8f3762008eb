"""The same batch is trained on again and again.

## What happens
The batch is fetched once before the loop, the iterator is made anew at every step, or a seed inside the loop draws the
same items. The network learns that batch by heart and sees nothing else.

## How it shows
The training loss falls smoothly to almost nothing within a few dozen steps; held-out scores stay where they began.

## What else looks like this
Overfitting of a small data set: slower, and the loss still differs from batch to batch.

## When this is wrong
The loss of successive steps scatters as that of different batches does.

## Fix
Iterate over the loader itself; set seeds before the loop, not inside it.

## Trial
Print the sum of the inputs of ten successive steps: it must differ.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io): overfit one batch, on purpose.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "same-batch-repeated"
AREA = "loop"
ABOUT = "learning"
EXPLAINS = (
    "gap-at-guessing", "train-val-gap", "memorised", "val-left-behind", "at-chance", "declined-after-peak",
    "loss-exactly-zero", "too-smooth",
)  # fmt: skip
SHOWS = {"train-skill": "in", "gap-growth": "high", "held-out-gain": "low", "train-scatter": "in"}
FORBIDS = {"epoch-sawtooth": "seen"}
PROVED_BY = ("one-batch-only", "seed-in-loop")
TRIAL = "print the sum of the inputs of ten successive steps: it must differ"
REMEDY = Remedy(
    "Take a new batch from the loader at every step.",
    (),
    "safe",
    "the training loss scatters from step to step, and held-out scores rise",
)
