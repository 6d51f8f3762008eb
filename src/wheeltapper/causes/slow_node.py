"""One device or node is slow, and all others wait for it.

## What happens
Synchronous training runs at the pace of the slowest rank: a throttled device, a bad link, a neighbour on the
same machine.

## How it shows
Throughput drops in one step and stays there, on all ranks, with the data time unchanged; one rank's compute time
is above the others'.

## What else looks like this
A slow loader (data time grows), longer inputs, checkpoint writing, a resume on other machines.

## When this is wrong
One device trains, or the loss of speed is in the data time.

## Fix
Find the rank by its compute time before the reduction, exclude it, run the vendor's diagnosis.

## Trial
The same job without each half of the nodes in turn: the half that keeps the old speed is sound.

## References
- BigScience 176B chronicles (bigscience-workshop/bigscience, train/tr11-176B-ml).
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), debugging and performance.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Finding, Remedy

ID = "slow-node"
AREA = "system"
EXPLAINS = ("throughput-fall",)
PRIOR = -2.5
TRIAL = "the same job without each half of the nodes in turn: the half that keeps the old speed is sound"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    world = case.knob("world_size") or case.run.fact("world_size")
    if world == 1:
        return Excluded("one process trains")
    fall = case.found("throughput-fall")
    if not fall:
        return Excluded("throughput did not fall")
    out = []
    if any(s.kind == "resume" and _near(fall[0], s.start) for s in case.run.segments):
        out.append(Evidence(-1.5, "the run was resumed there: other machines, other settings", "resume"))
    ranks: dict[int, float] = {}
    for series in case.run.series.values():
        if series.rank is not None and series.quantity == "duration" and series.finite.any():
            ranks[series.rank] = max(ranks.get(series.rank, 0.0), float(np.nanmedian(series.values)))
    if len(ranks) >= 3:
        slowest = max(ranks, key=lambda rank: ranks[rank])
        usual = float(np.median([value for rank, value in ranks.items() if rank != slowest]))
        if usual > 0 and ranks[slowest] > 1.05 * usual:  # BLOOM's bad device cost 5 to 6 %
            out.append(
                Evidence(4.0, f"rank {slowest} takes {ranks[slowest] / usual:.2f} times the others' time", "ranks")
            )
        else:
            return Excluded("all ranks take the same time")
    return out


def _near(fall: Finding, start: float) -> bool:
    return fall.onset is not None and abs(fall.onset - start) <= 0.02 * max(abs(fall.onset), 1.0)


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Find the slow rank by its time before the reduction, and leave it out.", (), "safe",
               "throughput is back at its old level"),
    )  # fmt: skip
