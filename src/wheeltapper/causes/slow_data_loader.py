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

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._look import series_like
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series

ID = "slow-data-loader"
AREA = "system"
EXPLAINS = ("throughput-fall",)
PRIOR = -1.5
TRIAL = "one cached batch for two hundred steps: a step time that falls decides"

LARGE, SMALL = 0.3, 0.05  # shares of the step: a third is worth mending; a twentieth cannot slow a run by a tenth


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    share = _waiting(case)
    out = []
    if share is not None:
        if share < SMALL:
            return Excluded(f"waiting for data takes {share:.0%} of the step")
        if share > LARGE:
            out.append(Evidence(4.0, f"waiting for data takes {share:.0%} of the step", "timers"))
    workers = case.knob("data.workers")
    if workers == 0 and case.knobs is not None:
        out.append(Evidence(2.0, "no loader process: data is made inside the step", "workers",
                            (case.knobs.place("data.workers"),)))  # fmt: skip
    out += proofs(case, "workers-per-process", bits=2.0)
    return out


def _waiting(case: Case) -> float | None:
    """Data time over step time in the last quarter, from timers on the same rows."""
    data = [s for s in series_like(case.run, r"(^|[/_. ])data(_?time)?$") if s.quantity in (None, "duration")]
    step = [s for s in series_like(case.run, r"(^|[/_. ])(iter_?|batch_?|step_?)?time$") if "data" not in s.raw.lower()]
    for a in data:
        b: Series | None = next((s for s in step if len(s) == len(a) and np.array_equal(s.at, a.at)), None)
        if b is not None:
            tail = slice(-max(3, len(a) // 4), None)
            whole = float(np.nanmedian(b.values[tail]))
            part = float(np.nanmedian(a.values[tail]))
            if whole > 0 and 0 <= part <= whole:
                return part / whole
    return None


def remedies(case: Case) -> tuple[Remedy, ...]:
    workers = case.knob("data.workers")
    edits = (Edit("data.workers", 0, 4, "load beside the step"),) if workers == 0 else ()
    return (
        Remedy("Load beside the step, from few large files.", edits, "try", "the step time is that of a cached batch"),
    )  # fmt: skip
