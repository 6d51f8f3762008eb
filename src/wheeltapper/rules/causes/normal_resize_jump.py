"""Jumps of loss and speed are expected when the image or sequence size changes.

## What happens
Progressive resizing and ramps of length or batch change the task and its cost from one row to the next.

## How it shows
Loss, throughput and memory jump together at an announced change, and learning goes on from there.

## What else looks like this
A resume on other machines; bad data from some step on.

## When this is wrong
The size did not change there.

## Fix
Nothing to mend. Compare only stretches of equal size.

## Trial
None needed: the log says where the size changed.

## References
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), debugging and performance.
- Howard 2018, Training Imagenet in 3 hours for USD 25 (fast.ai), progressive resizing.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._look import series_like

ID = "normal-resize-jump"
AREA = "curriculum"
NORMAL = True
SIZES = r"(image|img|crop|input)[/_. ]*size|resolution|seq(uence)?[/_. ]*len"


def expect(case: Case) -> str:
    """Only where a size is logged and changes: a setting alone may never have been applied."""
    for size in series_like(case.run, SIZES):
        x, at = size.values[size.finite], size.at[size.finite]
        spots = at[1:][np.diff(x) != 0]
        if not len(spots) or len(spots) > 20:
            continue
        jumped = [
            f
            for f in case.found("spiked", "throughput-fall", "memory-growth", "diverged")
            if f.onset is not None
            and f.clock == size.clock
            and f.severity != "ill"
            and np.min(np.abs(spots - f.onset)) <= 0.02 * (at[-1] - at[0])
        ]
        if jumped:
            return f"{jumped[0].summary}: expected here because {size.name} changes there"
    return ""
