"""Every step takes longer than the one before.

## What happens
Something grows with the number of steps: a list of losses with their graphs, a log that is read again each time, a
cache without an end, a metric over all items so far.

## How it shows
The time per step rises in a line from the first steps on, often with the memory.

## What else looks like this
A slow node or a shared file system slows a run at once, and lets it recover; a curriculum makes longer inputs.

## When this is wrong
The pace falls in one step, or comes back by itself.

## Fix
Find what grows: detach what is kept, write instead of collecting, reset metrics at every epoch.

## Trial
Profile one step early and one late on the same batch, and compare the longest lines.

## References
- PyTorch documentation, Frequently Asked Questions: don't accumulate history across your training loop.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "throughput-decay"
AREA = "system"
ABOUT = "efficiency"
EXPLAINS = ("throughput-fall", "memory-growth")
SHOWS = {"pace-change": "high"}
FORBIDS = {"pace-change": "in"}
TRIAL = "profile one early and one late step on the same batch"
REMEDY = Remedy("Find what grows from step to step, and empty it.", (), "safe", "late steps take as long as early ones")
