"""The training loss spent much of the run above where it began.

## What it sees
A training loss whose level lies above its first values over a large part of the record, even if it comes down later.

## Why it matters
An untrained model is the least one can have. A loss above it means that the steps did harm, usually because they were
too large; what is learned in the end is what the decay of the learning rate saved.

## How it decides
Block medians against the median of the first rows: above by 2 % of the loss and by three times the noise of a block, on
30 % of the record or more. A healthy loss falls from its first rows on; the noise of single values is in the threshold.

## When it is wrong
A curriculum, a growing resolution, a new term of the loss, a first value that is too low by accident (a running mean
that starts at zero); where a change is announced, nothing is said.

## References
KNOWLEDGE OUT-02, OUT-14, ST-09.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.run.model import Series
from wheeltapper.signals.statistics import block_medians, noise_of
from wheeltapper.signs import seen, where

ID = "above-start"
LIVE = True
SHARE, LEAST = 0.30, 0.02


def look(train_loss: Series, shifting: str = "") -> Answer:
    x = train_loss.values[train_loss.finite]
    if len(x) < 12 or x[0] <= 0:
        return Unknown("fewer than twelve training losses", ("a loss logged more often",))
    if shifting:
        return Clear(f"not judged: {shifting}")
    middles, levels = block_medians(x, 40)
    first = float(np.median(x[: max(2, len(x) // 40)]))
    noise = noise_of(x).sigma / math.sqrt(max(1.0, len(x) / len(levels)))
    above = levels > first + max(LEAST * abs(first), 3 * noise)
    share = float(above.mean())
    if share < SHARE:
        return Clear(f"the loss lies above its start on {share:.0%} of the record")
    start = int(middles[int(np.argmax(above))])
    index = int(np.flatnonzero(train_loss.finite)[start])
    text = (
        f"{train_loss.name} lies above its start ({first:.4g}) on {share:.0%} of the record, first at {where(train_loss, index)}; "
        f"at worst {float(levels.max()):.4g}"
    )
    return seen(ID, train_loss, text, severity="ill", grade="is-p", onset=index, p=1e-3, share=share, first=first)


_n = 60
CASES = {
    "finding": {
        "train/loss": [2.3, 2.31, *[2.6 + 0.02 * (i % 3) for i in range(40)], *[2.2 - 0.01 * i for i in range(18)]]
    },
    "clear": {"train/loss": [2.3 - 0.02 * i for i in range(_n)]},
    "near miss": {"train/loss": [2.3, 2.4, 2.5, 2.4, *[2.2 - 0.02 * i for i in range(56)]], "expect": "clear"},
    "unknown": {"train/loss": [2.3, 2.2]},
}
