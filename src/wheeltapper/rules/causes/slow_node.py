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

from wheeltapper.finding import Remedy

ID = "slow-node"
AREA = "system"
ABOUT = "efficiency"
EXPLAINS = ("throughput-fall",)
SHOWS = {"throughput-fall": "seen", "pace-change": "high"}
FORBIDS = {"throughput-fall": "clear"}
TRIAL = "the same job without each half of the nodes in turn: the half that keeps the old speed is sound"
REMEDY = Remedy(
    "Find the slow rank by its time before the reduction, and leave it out.",
    (),
    "safe",
    "throughput is back at its old level",
)
