"""Training waits for its data.

## What happens
Reading, decoding and augmenting take longer than the step, so the accelerator idles between batches.

## How it shows
The time for data is a large share of the step time, and its share grows when throughput falls.

## What else looks like this
A slow node (all ranks wait, data time is small), thermal throttling, a shared disk that others use.

## When this is wrong
The time for data is a small share of the step: then loading is hidden behind computing.

## Fix
More or persistent workers (per process, not per machine), smaller files packed into shards, decoding once.

## Trial
One cached batch for two hundred steps: a step time that falls decides.

## References
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), debugging and performance.
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "slow-data-loader"
AREA = "system"
ABOUT = "efficiency"
EXPLAINS = ("throughput-fall",)
SHOWS = {"throughput-fall": "seen"}
PROVED_BY = ("workers-per-process", "samples-one-by-one")
TRIAL = "one cached batch for two hundred steps: a step time that falls decides"


def remedies(case: Case) -> tuple[Remedy, ...]:
    workers = case.knob("data.workers")
    edits = (Edit("data.workers", 0, 4, "load beside the step"),) if workers == 0 else ()
    return (
        Remedy("Load beside the step, from few large files.", edits, "try", "the step time is that of a cached batch"),
    )
