"""The model overfits: it learns its training set, not the task.

## What happens
Training goes on lowering the loss on examples that were seen many times, while held-out examples get no
better, then worse.

## How it shows
The training loss keeps falling after the validation score turned; the gap grows; a larger data set moves
the turn later.

## What else looks like this
A learning rate that rises again (both losses worsen), a validation set that differs from the start (the
gap is there at the first evaluation), over-confidence (the loss rises, accuracy holds), EMA lag.

## When this is wrong
The training loss does not fall after the turn: then it is no overfitting, whatever the validation does.

## Fix
Keep the checkpoint of the turn; more data or augmentation, weight decay, dropout, a shorter schedule.

## Trial
Train the same recipe on half the data: the turn must come earlier. Or add augmentation: it must come later.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- Our simulation of flat, autocorrelated noise: the best of 50 evaluations lies 2.2 sigma above the last
  at the median, 4.0 at the 95th percentile, and ten evaluations without a new best are seen in 99.9 % of
  flat series.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy
from wheeltapper.rules.causes import Case

ID = "overfitting"
AREA = "data"
ABOUT = "learning"
EXPLAINS = ("declined-after-peak", "train-val-gap", "plateau", "memorised", "gap-at-guessing")
SHOWS = {"gap-growth": "high", "train-gain": "in"}
FORBIDS = {"train-gain": "low", "stuck-from-start": "seen"}
TRIAL = "train the same recipe on half the data: the turn must come earlier"


def remedies(case: Case) -> tuple[Remedy, ...]:
    if not case.found("declined-after-peak", severity="ill"):
        text = "Hold data out and choose the length of the run by it; to go further, add data or augmentation."
        return (Remedy(text, (), "safe", "a score on held-out data shows where the turn is"),)
    return (
        Remedy(
            "Keep the checkpoint of the turn, and stop there next time; to go further, add data or augmentation.",
            (),
            "safe",
            "the validation score at the end is within noise of its best",
        ),
    )
