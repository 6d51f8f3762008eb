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

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy

ID = "metric-numerically-broken"
AREA = "evaluation"
EXPLAINS = ("impossible-value",)
PRIOR = -0.5
TRIAL = "compute the metric of the real data against itself, in double precision: minutes"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    found = case.found("impossible-value", severity="ill")
    if not found:
        return Excluded("every metric is within its definition")
    out = [Evidence(7.0, found[0].summary, "proof", found[0].places)]
    if case.found("diverged", "not-finite", "spiked", severity="ill"):
        out.append(Evidence(-6.0, "the training loss broke, which no metric does", "loss"))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Mend the metric before reading it: more samples, double precision.",
            (),
            "safe",
            "the metric of real data against itself is near its best value",
        ),
    )
