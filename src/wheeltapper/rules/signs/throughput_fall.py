"""Training became slower and stayed slower.

## What it sees
A throughput, or a time per step, whose level in the last quarter of the record is clearly worse than before.

## Why it matters
A slow node, a throttled device, a data loader that falls behind or fewer workers after a resume cost wall
time, and nobody looks at this curve.

## How it decides
The first twentieth is left out (compilation). Block medians: the level of the last quarter against that of
the first half, by at least 20 % and six times the spread of the blocks, with every block of the last tenth
below the median before. 20 %: the levels of healthy records wander less (LOG.md, 2026-11-16). A note, and a
watch from a factor of two on, because a growing batch, image or sequence slows a step by design. The fall
is placed where the blocks cross the middle between both levels.

## When it is wrong
Progressive resizing, growing sequences or batches; other work on the same machine.

## References
- BigScience 176B chronicles (bigscience-workshop/bigscience, train/tr11-176B-ml).
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), debugging and performance.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.machine import FEWEST
from wheeltapper.study.statistics import block_medians, robust_sigma

ID = "throughput-fall"
LIVE = True
FALL, SIGMAS, WATCH = 0.20, 6.0, 0.5


def look(pace: Series, shifting: str = "") -> Answer:
    good = np.flatnonzero(pace.finite)
    speed = pace.values[good] if pace.quantity == "throughput" else 1.0 / pace.values[good]
    skip = len(speed) // 20
    spots, levels = block_medians(speed[skip:], 80)
    if len(levels) < FEWEST // 2:
        return Unknown("too few rows", ("time per step",))
    early, late = levels[: len(levels) // 2], levels[-max(2, len(levels) // 4) :]
    before, after = float(np.median(early)), float(np.median(late))
    fall = 1 - after / before
    # The spread of the blocks, whatever they do from the first half to the second.
    spread = max(robust_sigma(early), robust_sigma(late)) / before
    last = levels[-max(2, len(levels) // 10) :]
    if fall < FALL or fall < SIGMAS * spread or last.max() >= (before + after) / 2:
        return Clear(f"the pace at the end is {after / before:.0%} of that before")
    cross = int(np.flatnonzero(levels > (before + after) / 2)[-1]) + 1
    index = int(good[skip + round(float(spots[min(cross, len(spots) - 1)]))])
    text = f"{pace.name} shows training at {after / before:.0%} of its earlier pace since {where(pace, index)}"
    watch = fall >= WATCH and not shifting
    return seen(ID, pace, text, severity="watch" if watch else "note", grade="is", onset=index, fall=fall)


CASES = {
    "finding": {
        "samples_per_second": [100.0 + (i * 7) % 5 for i in range(200)] + [45.0 + (i * 7) % 5 for i in range(100)]
    },
    "clear": {"samples_per_second": [100.0 + (i * 7) % 25 for i in range(300)]},
    "near miss": {"samples_per_second": [100.0] * 200 + [40.0] * 30 + [100.0] * 70, "expect": "clear"},
    "unknown": {"train/loss": [1.0, 0.9]},
}
