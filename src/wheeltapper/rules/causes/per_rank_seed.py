"""Every process shuffles the sharded data with a seed of its own.

## What happens
A distributed sampler cuts one permutation into shards. With a permutation per process the shards overlap:
of W processes an epoch sees 1 − (1 − 1/W)^W of the data, two thirds of it for 8, and parts several times.

## How it shows
Progress per epoch is slower than in the same recipe on one device; an epoch counts items twice.

## What else looks like this
A smaller data set, a learning rate that was not scaled with the batch.

## When this is wrong
The data are sharded before the sampler sees them, or one process trains.

## Fix
One seed for the sampler on all processes; seeds per process belong to augmentation.

## Trial
Collect the indices of one epoch from all processes: repeats decide.

## References
- PyTorch, torch/utils/data/distributed.py.
- PyTorch, torch/utils/data/_utils/worker.py, and pytorch/pytorch pull request 56488.
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "per-rank-seed"
AREA = "data"
ABOUT = "learning"
EXPLAINS = ("too-slow",)
SHOWS = {"too-slow": "seen"}
PROVED_BY = ("per-rank-sampler-seed",)
TRIAL = "collect the indices of one epoch from all processes: repeats decide"
REMEDY = Remedy(
    "Give the sampler the same seed on every process.", (), "safe", "the indices of one epoch hold every item once"
)
