"""The averaged model carries the wrong normalisation statistics.

## What happens
The average covers parameters only; its BatchNorm statistics belong to the live network (or to the start), and do not fit
the averaged weights.

## How it shows
The averaged model scores badly while the raw one is fine; recomputing the statistics on a few hundred batches mends it.

## What else looks like this
An average that is too long: there recomputing does not help.

## When this is wrong
The network has no BatchNorm, or the implementation averages buffers.

## Fix
Average or recompute the buffers (update_bn) before evaluating.

## Trial
Evaluate the average before and after update_bn on 200 batches.

## References
- PyTorch, torch/optim/swa_utils.py.
- timm, timm/utils/model_ema.py (huggingface/pytorch-image-models).
- NCAR/miles-credit issues 394 and 409 (averaged buffers of spectral norm).
- arghyaiitb/assignment_9, train.py: decay 0.9999 updated every 10 steps in a run of 37,500.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "ema-buffers-stale"
AREA = "averaging"
ABOUT = "evaluation"
EXPLAINS = (
    "at-chance", "never-left-zero", "ema-raw-gap", "val-left-behind", "declined-after-peak", "below-baseline",
    "gap-at-guessing", "average-statistics-stand-still",
)  # fmt: skip
SHOWS = {"average-gap": "high", "average-buffers": "high", "average-statistics-stand-still": "seen"}
PROVED_BY = ("ema-buffers-not-averaged",)
TRIAL = "evaluate the average before and after recomputing its statistics on 200 batches"
REMEDY = Remedy(
    "Recompute the statistics of the average before evaluating it.",
    (),
    "try",
    "the averaged score rises to the raw one",
)
