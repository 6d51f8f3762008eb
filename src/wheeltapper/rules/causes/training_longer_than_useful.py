"""The run goes on long after it stopped learning anything new.

## What happens
The schedule was made for a larger data set or another model: the loss is at its floor, or the training set
is learned by heart, while most of the budget is still ahead.

## How it shows
The loss is flat over most of the record with the learning rate still high; many epochs over the same data.

## What else looks like this
A plateau that a lower learning rate ends at once (noise floor), a stuck model (level of an untrained one).

## When this is wrong
A score on held-out data still improves.

## Fix
Stop, or decay the learning rate now; hold data out and choose the length by it.

## Trial
Fork with a tenth of the learning rate for a few hundred steps: a drop at once means noise floor, none means
floor of the task.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "training-longer-than-useful"
AREA = "run"
ABOUT = "efficiency"
EXPLAINS = ("plateau", "memorised", "train-val-gap")
SHOWS = {"plateau": "seen", "late-gain": "low"}
FORBIDS = {"stuck-from-start": "seen", "still-falling": "high"}
TRIAL = (
    "fork with a tenth of the learning rate for a few hundred steps: a drop at once means noise floor, none means floor"
)
REMEDY = Remedy(
    "Stop here or decay the learning rate now; hold data out to choose the length next time.",
    (),
    "advice",
    "the held-out score of this checkpoint is within noise of later ones",
)
