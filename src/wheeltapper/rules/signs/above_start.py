"""The training loss spent much of the run above where it began.

## What it sees
A training loss whose level lies above its first values over a large part of the record, even if it comes
down later.

## Why it matters
An untrained model is the least one can have. A loss above it means that the steps did harm, usually because
they were too large; what is learned in the end is what the decay of the learning rate saved.

## How it decides
Block medians against the median of the first rows: above by three times the noise of a block, on 30 % of
the record or more; and by 2 % of the loss where the start is the known level of a model that ignores its
input (ln C), by 30 % where it is not: the loss of a detector starts low, because few boxes match at first,
and rises in healthy runs.

## When it is wrong
A curriculum, a growing resolution, a new term of the loss, a first value that is too low by accident (a
running mean that starts at zero); where a change is announced, nothing is said.

## References
- BigScience, lessons learned (bigscience-workshop/bigscience, train/lessons-learned.md).
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- Stanford CS231n notes, neural-networks-3 (cs231n.github.io).
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import block_medians, noise_of
from wheeltapper.study.trivial import Trivial

ID = "above-start"
LIVE = True
SHARE = 0.30
AT_TRIVIAL, ELSEWHERE = 0.02, 0.30  # how far above the start, as a share of it


def look(train_loss: Series, shifting: str = "", trivial_loss: Trivial | None = None) -> Answer:
    x = train_loss.values[train_loss.finite]
    if len(x) < 12 or x[0] <= 0:
        return Unknown("fewer than twelve training losses", ("a loss logged more often",))
    if shifting:
        return Clear(f"not judged: {shifting}")
    middles, levels = block_medians(x, 40)
    first = float(np.median(x[: max(2, len(x) // 40)]))
    noise = noise_of(x).sigma / math.sqrt(max(1.0, len(x) / len(levels)))
    known = trivial_loss is not None and abs(first / trivial_loss.loss - 1) < 0.1
    above = levels > first + max((AT_TRIVIAL if known else ELSEWHERE) * abs(first), 3 * noise)
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
        "train/loss": [2.3, 2.31, *[3.3 + 0.02 * (i % 3) for i in range(40)], *[2.2 - 0.01 * i for i in range(18)]]
    },
    "clear": {"train/loss": [2.3 - 0.02 * i for i in range(_n)]},
    "near miss": {
        "train/loss": [0.58, 0.59, *[0.68 + 0.01 * (i % 3) for i in range(40)], *[0.5 - 0.01 * i for i in range(18)]],
        "expect": "clear",
    },
    "unknown": {"train/loss": [2.3, 2.2]},
}
