"""The data got worse at some point: a bad shard, a changed mix, a broken file.

## What happens
From one point on the loader delivers other data: corrupt, of another kind, or in another order.

## How it shows
The loss jumps between two rows and stays at the new level, without a rise of the gradient norm before; the jump sits
at a shard, file or epoch boundary; an older checkpoint shows the same loss on the new data.

## What else looks like this
Divergence (grows), a resume that lost state, a curriculum stage, repeated data before the jump.

## When this is wrong
The gradient norm rose first, or the level drifts instead of jumping.

## Fix
Evaluate the checkpoint before the jump on the data after it, and the other way round.

## Trial
2 x 2: the checkpoints before and after on the data before and after. Hard for both means data.

## References
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), training loss patterns.
- OPT-175B logbook (facebookresearch/metaseq, projects/OPT/chronicles).
- Chowdhery et al. 2022, PaLM (arXiv:2204.02311): skipped batches, and spikes that need data and state
  together.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "bad-data-from-step"
AREA = "data"
ABOUT = "learning"
EXPLAINS = ("spiked", "diverged", "slow-rise", "collapsed", "at-chance", "declined-after-peak", "above-start")
SHOWS = {"train-break": "high", "train-loss-lost": "high"}
TRIAL = "2 x 2: the checkpoints before and after the jump, each on the data before and after"
REMEDY = Remedy(
    "Look at what the loader gives from the jump on, mend or leave out that data, and go on from a checkpoint before it.",
    (),
    "try",
    "the loss passes the onset on its old level",
)
