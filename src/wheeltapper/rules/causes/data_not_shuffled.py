"""The training data comes in the same order in every epoch.

## What happens
Shuffling is off, or a distributed sampler is never told the epoch. Sorted data feeds one class after the
other; a fixed order feeds the same batches again and again.

## How it shows
The loss repeats its pattern from epoch to epoch, batch by batch; with sorted data the validation score
swings with the last class seen.

## What else looks like this
The sawtooth of Adam over epochs (a common mean shape, but no repetition batch by batch), a metric that is
reset at the start of an epoch, evaluation or checkpoint intervals.

## When this is wrong
The rows of two epochs, mean shape removed, are uncorrelated: then the order changes.

## Fix
Shuffle; call set_epoch on a distributed sampler.

## Trial
Fork with another shuffle seed: the pattern within the epoch must vanish.

## References
- PyTorch, torch/utils/data/distributed.py.
- The Epochal Sawtooth Effect (arXiv:2410.10056).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "data-not-shuffled"
AREA = "data"
ABOUT = "learning"
EXPLAINS = ("epoch-sawtooth", "periodic", "oscillating", "at-chance")
SHOWS = {"epoch-period": "high", "epoch-sawtooth": "seen"}
PROVED_BY = ("set-epoch-missing", "not-shuffled")
TRIAL = "fork with another shuffle seed: the pattern within the epoch must vanish"


def remedies(case: Case) -> tuple[Remedy, ...]:
    if case.knob("data.shuffle") is False:
        return (
            Remedy(
                "Shuffle the training data.",
                (Edit("data.shuffle", False, True),),
                "safe",
                "rows of consecutive epochs are uncorrelated",
            ),
        )
    return (Remedy("Call set_epoch on the sampler in every epoch.", (), "safe", "rows of two epochs are uncorrelated"),)
