"""The metric itself is computed wrongly: its values cannot exist.

## What happens
A matrix square root of a singular covariance, too few samples for the statistics, an overflow in half
precision, a division by zero: the number has lost its meaning.

## How it shows
Values that the definition forbids: a negative or astronomical FID, a share above one.

## What else looks like this
A broken model gives bad values, not impossible ones.

## When this is wrong
The column holds another quantity under a known name.

## Fix
Compute the metric on two halves of the real data: it must be small and positive. Use more samples and double
precision.

## Trial
The metric of the real data against itself, in double precision: minutes.

## References
- Heusel et al. 2017, GANs Trained by a Two Time-Scale Update Rule (arXiv:1706.08500), the definition of
  FID.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "metric-numerically-broken"
AREA = "evaluation"
ABOUT = "evaluation"
EXPLAINS = ("impossible-value",)
SHOWS = {"impossible-value": "seen"}
TRIAL = "compute the metric of the real data against itself, in double precision: minutes"
REMEDY = Remedy(
    "Mend the metric before reading it: more samples, double precision.",
    (),
    "safe",
    "the metric of real data against itself is near its best value",
)
