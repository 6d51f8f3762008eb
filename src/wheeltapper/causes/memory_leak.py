"""Memory grows from step to step until it is full.

## What happens
Something keeps what should be freed: a loss that is summed with its graph, outputs in a list, a validation that
builds gradients, loader workers that copy a large Python list.

## How it shows
Allocated memory rises at a steady rate at the same phase of the step; the run ends out of memory late.

## What else looks like this
Longer inputs later on, a cache that fills and stops, fragmentation (reserved grows, allocated does not), a batch
that is simply too large (dies at once).

## When this is wrong
Memory is flat, or steps up once and stays.

## Fix
.item() or detach() what is kept for logging; no_grad in validation; arrays instead of lists in the data set.

## Trial
Two hundred steps on one repeated batch: allocated memory must not move.

## References
- PyTorch FAQ, docs/source/notes/faq.rst ("My model reports CUDA runtime error(2): out of memory").
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.signals.statistics import block_medians

ID = "memory-leak"
AREA = "system"
EXPLAINS = ("memory-growth", "crashed")
PRIOR = -2.5
TRIAL = "two hundred steps on one repeated batch: allocated memory must not move"

GREW = 1.2  # a fifth: allocators and varying lengths move less after the first tenth of a run
STEADY = 0.8  # of the blocks rise: a cache that fills once gives far fewer


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    memory = [s for s in case.run.series.values() if s.quantity == "memory" and int(s.finite.sum()) >= 20]
    out = []
    if memory:
        verdicts = [(s, _growth(s)) for s in memory]
        series, (factor, rising) = max(verdicts, key=lambda item: item[1][0])
        if factor < 1.05:
            return Excluded(f"{series.name} is flat (x{factor:.2f} since the first tenth)")
        if factor > GREW and rising > STEADY:
            out.append(
                Evidence(4.0, f"{series.name} grew {factor:.2g} times, in {rising:.0%} of all stretches", "memory",
                         (series.place(len(series) - 1),))
            )  # fmt: skip
        elif factor > GREW:
            out.append(Evidence(-1.5, f"{series.name} steps up rather than grows", "memory"))
    out += proofs(case, "eval-without-no-grad", bits=3.0)
    if any(e.kind == "oom" for e in case.run.events):
        progress = case.get("progress")
        late = progress is not None and progress.share is not None and progress.share > 0.1
        out.append(
            Evidence(1.5 if late else -1.5, f"it ran out of memory {'late' if late else 'early'} in the run", "oom")
        )
    return out


def _growth(series: Series) -> tuple[float, float]:
    """End over the level after the first tenth (the warm-up of allocators), and the share of rising blocks."""
    x = series.values[series.finite]
    x = x[len(x) // 10 :]
    _, levels = block_medians(x, 20)
    first = float(levels[0])
    factor = float(levels[-1]) / first if first > 0 else 1.0
    return factor, float(np.mean(np.diff(levels) > 0)) if len(levels) > 1 else 0.0


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Detach what is kept for logging, and validate without gradients.", (), "safe",
               "allocated memory is flat after the first hundred steps"),
    )  # fmt: skip
