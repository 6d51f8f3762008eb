"""The averaged weights stay in the model after each evaluation.

## What happens
For evaluation the averaged weights are copied into the model and the raw ones are not put back. Training goes on from
the average with an optimizer state that belongs to other weights.

## How it shows
The training loss jumps on the rows right after every evaluation, and only there.

## What else looks like this
A model left in evaluation mode, a data order that restarts with each evaluation, an epoch boundary at the same place.

## When this is wrong
No average of the weights is kept; or the jumps come at epochs without an evaluation.

## Fix
Store the raw weights before the copy and restore them after it.

## Trial
Move the evaluation interval by a third: the jumps must move with it.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- torch_ema and ema-pytorch: store, copy and restore around an evaluation.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "ema-swap-not-undone"
AREA = "averaging"
ABOUT = "learning"
EXPLAINS = ("periodic", "oscillating", "spiked", "epoch-sawtooth")
SHOWS = {"periodic": "seen"}
TRIAL = "move the evaluation interval by a third: the jumps must move with it"
REMEDY = Remedy(
    "Put the raw weights back after each evaluation.", (), "safe", "the training loss no longer jumps after evaluations"
)
