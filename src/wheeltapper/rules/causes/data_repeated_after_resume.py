"""After a resume the run reads the same data again.

## What happens
The position of the data loader (or its random state) is not saved. After the resume the samples of the last stretch
come again: the loss on them is too low, because they were just learned, and returns to its level afterwards. Nothing is
wrong with the model at that return.

## How it shows
The training loss drops at a resume, stays low, and jumps back to the level before the resume; validation does not move.

## What else looks like this
A learning rate that was cut at the resume (the loss stays low), a level shift from bad data (no resume before it).

## When this is wrong
The loss does not drop at the resume, or ends above the level it had before.

## Fix
Save the sampler's position and seed; skip what was read.

## Trial
Evaluate the checkpoint of the resume on the batches that follow it: a loss as low shows that they were seen.

## References
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), training loss patterns.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "data-repeated-after-resume"
AREA = "resume"
ABOUT = "learning"
EXPLAINS = ("spiked", "restart-jump", "diverged")
SHOWS = {"restart-jump": "seen", "train-break": "high"}
PROVED_BY = ("resume-incomplete",)
TRIAL = "evaluate the checkpoint of the resume on the batches that follow it"
REMEDY = Remedy(
    "Save and restore the position of the data loader.",
    (),
    "safe",
    "the loss continues across the resume without a drop",
)
