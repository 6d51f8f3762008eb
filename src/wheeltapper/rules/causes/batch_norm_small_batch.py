"""Batch norm is computed over too few samples.

## What happens
Each device normalises with the mean and variance of its own few samples. With one to four of them these are so
noisy that training and evaluation, which uses running averages, see different networks.

## How it shows
Validation jumps from one evaluation to the next, or stays far behind training from the start, with a small batch
per device in a network with batch norm; in training mode the same data scores well.

## What else looks like this
Overfitting (the gap grows with time), an evaluation in the wrong mode or with another normalisation.

## When this is wrong
The network has layer or group norm, its batch norm is frozen (as in detection), or samples hold many positions
each (segmentation at full resolution).

## Fix
Synchronised batch norm, group norm, frozen statistics, or more samples per device.

## Trial
Evaluate one checkpoint before and after recomputing the statistics on 200 training batches.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- The relative spread of a variance of n values is sqrt(2/(n-1)): 82 % at 4, 37 % at 16.
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import number

ID = "batch-norm-small-batch"
AREA = "batch"
ABOUT = "learning"
EXPLAINS = ("train-val-gap", "val-spike", "val-swings", "oscillating", "at-chance", "declined-after-peak")
SHOWS = {"batch-size": "low"}
TRIAL = "evaluate one checkpoint before and after recomputing its statistics on 200 training batches"
FEW, ENOUGH = 4, 16  # group norm's paper: batch norm loses accuracy below 16 and badly at 2 to 4 (Wu and He 2018)


def remedies(case: Case) -> tuple[Remedy, ...]:
    batch = number(case.knob("batch.per_device"))
    edits = (Edit("batch.per_device", batch, ENOUGH, "enough for batch norm"),) if batch and batch < ENOUGH else ()
    return (
        Remedy(
            "Use synchronised or frozen batch norm, group norm, or more samples per device.",
            edits,
            "try",
            "recomputed statistics no longer change the score",
        ),
    )
