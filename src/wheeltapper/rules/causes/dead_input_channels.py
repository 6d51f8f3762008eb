"""The inputs carry nothing: a channel, or all of them, is constant.

## What happens
A wrong path, a failed decode, a mask or a normalisation by zero turns the inputs into constants. The model
can then learn the frequency of the labels and nothing else.

## How it shows
Training and validation both stay at the entropy of the labels, at any learning rate; the standard deviation
of the inputs is zero.

## What else looks like this
Labels that do not belong to their inputs (training can still memorise them), a learning rate of nearly
zero, frozen weights.

## When this is wrong
The training loss sinks below the entropy of the labels: then the model tells its inputs apart.

## Fix
Look at the tensor that enters the model, not at the file: per channel mean, spread, share of zeros.

## Trial
Replace the inputs by zeros for a few hundred steps: an unchanged loss curve decides.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "dead-input-channels"
AREA = "data"
ABOUT = "learning"
EXPLAINS = ("at-chance", "at-prior", "stuck-from-start")
SHOWS = {"skill": "low"}
FORBIDS = {"memorised": "seen"}
PROVED_BY = ("input-is-constant",)
TRIAL = "replace the inputs by zeros for a few hundred steps: an unchanged curve decides"
REMEDY = Remedy(
    "Print mean and spread per channel of the tensor that enters the model, and mend the loader.",
    (),
    "safe",
    "the training loss falls below the entropy of the labels",
)
