"""The data got worse at some point: a bad shard, a changed mix, a broken file.

## What happens
From one point on the loader delivers other data: corrupt, of another kind, or in another order.

## How it shows
The loss jumps between two rows and stays at the new level, without a rise of the gradient norm before; the jump sits
at a shard, file or epoch boundary; an older checkpoint shows the same loss on the new data.

## What else looks like this
Divergence (grows), a resume that lost state, a curriculum stage, repeated data before the jump.

## When this is wrong
The gradient norm rose first, or the level drifts instead of jumping.

## Fix
Evaluate the checkpoint before the jump on the data after it, and the other way round.

## Trial
2 x 2: the checkpoints before and after on the data before and after. Hard for both means data.

## References
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), training loss patterns.
- OPT-175B logbook (facebookresearch/metaseq, projects/OPT/chronicles).
- Chowdhery et al. 2022, PaLM (arXiv:2204.02311): skipped batches, and spikes that need data and state
  together.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence
from wheeltapper.run.model import Series

ID = "bad-data-from-step"
AREA = "data"
EXPLAINS = ("spiked", "diverged", "slow-rise", "collapsed", "at-chance")
PRIOR = -2.0
TRIAL = "2 x 2: the checkpoints before and after the jump, each on the data before and after"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    jumps = [f for f in case.found("spiked") if f.numbers.get("stays")]
    norm: Series | None = case.get("grad_norm")
    out = []
    if jumps:
        out.append(Evidence(1.5, jumps[0].summary, "jump", jumps[0].places))
    elif case.found("diverged", severity="ill"):
        out.append(Evidence(-1.0, "the loss grows rather than jumps", "jump"))
    if norm is not None and case.onset is not None:
        before = norm.values[(norm.at < case.onset) & norm.finite]
        if len(before) >= 10:
            rise = float(np.median(before[-3:]) / max(float(np.median(before[-30:])), 1e-30))
            if rise > 2:
                out.append(Evidence(-2.0, f"the gradient norm rose {rise:.2g} times before the loss did", "norm"))
            elif rise < 1.3:
                out.append(Evidence(1.0, "the gradient norm was calm up to the jump", "norm"))
    if any(s.kind == "resume" and case.onset is not None and abs(s.start - case.onset) < 1 for s in case.run.segments):
        out.append(Evidence(-1.5, "the run was resumed there", "resume"))
    return out
