"""Gradients that are not finite are replaced by numbers, so that a sick run looks alive.

## What happens
The loop applies nan_to_num to the gradients (EDM: infinity becomes 1e5; EDM2: everything becomes 0). A NaN then never
stops the run or shows in the loss scale: it goes on with arbitrary or empty updates.

## How it shows
In code only. In the record: training stops improving or drifts, with warnings of overflow or NaN in the log, and no
NaN in the curves.

## What else looks like this
Any plateau or drift. This is why such a run shows no NaN, rarely why it is sick.

## When this is wrong
No gradient was ever replaced; then the call does nothing.

## Fix
Log the number of replaced elements; stop when it stays above zero.

## Trial
Count the replaced elements over a hundred steps.

## References
- NVlabs/edm, training/training_loop.py (nan_to_num on the gradients).
- Karras et al. 2024, Analyzing and Improving the Training Dynamics of Diffusion Models (arXiv:2312.02696;
  NVlabs/edm2).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "grads-sanitised"
AREA = "precision"
ABOUT = "learning"
EXPLAINS = ("plateau", "slow-rise", "diverged", "hidden-nan", "stuck-from-start")
SHOWS = {"hidden-nan": "seen"}
FORBIDS = {"not-finite": "seen"}
PROVED_BY = ("nan-to-num-grads",)
TRIAL = "count the replaced elements over a hundred steps"
REMEDY = Remedy(
    "Count and log the replaced gradients, and stop when they do not end.",
    (),
    "safe",
    "the count is zero on nearly every step of a sound run",
)
