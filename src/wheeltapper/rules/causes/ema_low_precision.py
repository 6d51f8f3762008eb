"""The average of the weights is kept in half precision and does not move.

## What happens
Each update adds (1 - decay) of the difference. In bf16 anything below 1/512 of the stored value is rounded away (in
fp16 1/4096), so with a decay of 0.9999 the average stays at its first copy for ever.

## How it shows
The averaged model scores like the untrained one, at any length, while the raw model learns; its tensors are bf16 or fp16.

## What else looks like this
A horizon that is too long (it does move, slowly), an average that is never updated, stale buffers.

## When this is wrong
The average is stored in half precision but kept in fp32 while training.

## Fix
Keep the average in fp32.

## Trial
Compare the averaged weights of two checkpoints: they must differ.

## References
- Executed with torch 2.13: with decay 0.9999, 20,000 steps from 1 to 2 leave bf16 and fp16 at 1.0; fp32
  reaches 1.8647.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "ema-low-precision"
AREA = "averaging"
ABOUT = "evaluation"
EXPLAINS = (
    "at-chance", "never-left-zero", "constant-metric", "ema-raw-gap", "below-baseline", "val-left-behind",
    "average-stands-still",
)  # fmt: skip
SHOWS = {"average-gap": "high", "average-stands-still": "seen", "val-left-behind": "seen"}
FORBIDS = {"average-gap": "in"}
PROVED_BY = ("ema-low-precision",)
TRIAL = "compare the averaged weights of two checkpoints: they must differ"
REMEDY = Remedy("Keep the average in fp32.", (), "safe", "the averaged weights change from checkpoint to checkpoint")
