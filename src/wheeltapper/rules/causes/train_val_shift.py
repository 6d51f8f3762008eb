"""Training and validation come from different populations.

## What happens
Other sources, another time, another preparation: what is learned does not carry over, however long it is
trained.

## How it shows
The gap is there at the first evaluation, before anything could be memorised, and it stays.

## What else looks like this
Overfitting (the gap grows from nothing), another unit of one of the losses (a constant ratio), mixup and
dropout (validation better), a broken evaluation (validation learns nothing at all).

## When this is wrong
The first evaluations agree with training: then the gap was learned, it is overfitting.

## Fix
Compare the two sets: sources, sizes, means, frequency of the classes; draw the splits again at random.

## Trial
Train a small classifier to tell training from validation items: above chance decides.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "train-val-shift"
AREA = "data"
ABOUT = "evaluation"
EXPLAINS = ("train-val-gap", "val-left-behind")
SHOWS = {"gap-at-start": "high", "score-gap-at-start": "high", "train-val-gap": "seen"}
TRIAL = "train a small classifier to tell training from validation items: above chance decides"
REMEDY = Remedy(
    "Draw the splits again from one shuffled pool, or judge on the set that counts.",
    (),
    "advice",
    "the first evaluation agrees with training",
)
