"""The memory in use grows and grows.

## What it sees
A logged memory that rises through the whole record, as fast at the end as before.

## Why it matters
A leak ends in a crash: typically losses kept with their graph, or lists in the workers of the data loader. A
high but level memory is no leak.

## How it decides
Block medians without the first tenth (allocation, the largest batch so far): each third above the one before,
the last third growing at least half as fast as the second, by 10 % in all, with a slope at p < 1e-3 over the
number of series, autocorrelation taken out. Peak counters rise too, but ever more slowly, and fail
the second test. Where it grows further at this rate, the doubling time is given. A watch.

## When it is wrong
Growing sequences, batches or images; a cache that fills up once.

## References
- PyTorch FAQ, docs/source/notes/faq.rst ("My model reports CUDA runtime error(2): out of memory").
- Slope of the allocated memory, its autocorrelation taken out, and the largest of the last quarter
  against the one before.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import block_medians, slope_p

ID = "memory-growth"
LIVE = True
GROWTH, KEEPS, P = 0.10, 0.5, 1e-3


def look(memory: tuple[Series, ...], shifting: str = "") -> Answer | list[Finding]:
    out = [finding for series in memory if (finding := _one(series, P / len(memory), shifting)) is not None]
    return out[:3] or Clear("no memory keeps growing")


def _one(series: Series, limit: float, shifting: str) -> Finding | None:
    good = np.flatnonzero(series.finite)
    spots, levels = block_medians(series.values[good], 90)
    skip = len(levels) // 10
    spots, levels = spots[skip:], levels[skip:]
    thirds = [float(np.median(part)) for part in np.array_split(levels, 3)]
    first, second = thirds[1] - thirds[0], thirds[2] - thirds[1]
    start, end = float(np.median(levels[:3])), float(np.median(levels[-3:]))
    if min(first, second) <= 0 or second < KEEPS * first or end < (1 + GROWTH) * start:
        return None
    tail = len(levels) // 3
    slope, p = slope_p(spots[-tail:], levels[-tail:])
    if slope <= 0 or p >= limit:
        return None
    index = int(good[round(float(spots[0]))])
    text = f"{series.name} grew from {start:.4g} to {end:.4g} since {where(series, index)}, and as fast at the end as before"
    text += f" ({shifting})" if shifting else ""
    return seen(
        ID, series, text, severity="note" if shifting else "watch", grade="is-p", onset=index, p=p, growth=end / start
    )


CASES = {
    "finding": {"gpu_mem": [10.0 + 0.02 * i + 0.1 * ((i * 7) % 5) for i in range(300)]},
    "clear": {"gpu_mem": [10.0 + 0.1 * ((i * 7) % 5) for i in range(300)]},
    "near miss": {"max_mem": [10.0 + 2.0 * (1 - 0.97**i) for i in range(300)], "expect": "clear"},
    "unknown": {"train/loss": [1.0, 0.9]},
}
