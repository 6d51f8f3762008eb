"""The attention logits (or the output logits) grow without limit.

## What happens
Queries and keys grow until the softmax puts all weight on one position; its gradient vanishes there and is
huge nearby. At high learning rates it happens in small models too.

## How it shows
The largest attention logit climbs steadily, or the entropy of attention sinks to zero, well before the loss
breaks.

## What else looks like this
A rate that is too high (the logits are how it shows in transformers), bad data, an overflow in fp16.

## When this is wrong
The logits are flat up to the onset, or queries and keys are normalised.

## Fix
Normalise queries and keys; a z-loss of 1e-4 for the output; a lower rate.

## Trial
Fork before the onset with normalised queries and keys, three seeds each.

## References
- Wortsman et al. 2023, Small-scale proxies for large-scale Transformer training instabilities
  (arXiv:2309.14322).
- Zhai et al. 2023, Stabilizing Transformer Training by Preventing Attention Entropy Collapse
  (arXiv:2303.06296).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import OFF, series_like, settings_like
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "attention-logit-growth"
AREA = "model"
EXPLAINS = ("diverged", "spiked", "slow-rise", "not-finite", "grad-norm-growth")
PRIOR = -4.0
TRIAL = "fork before the onset with normalised queries and keys, three seeds each"

GROWN, SUNK = 4.0, 0.25  # logits of 2 that become 8 turn a mild softmax into one position; drift within a stage is less


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    normed = [leaf for leaf in settings_like(case.run, r"qk_?(layer)?_?norm") if leaf.value not in OFF]
    if normed:
        return Excluded(f"queries and keys are normalised ({normed[0].dotted})")
    out = []
    for series in series_like(case.run, r"(att\w*|qk|output)[/_. ]*(max[/_. ]*)?logit|max[/_. ]*(att\w*|qk)", least=10):
        change = _before(series, case.since(series.clock))
        if change is not None and change > GROWN:
            out.append(
                Evidence(5.0, f"{series.name} grew {change:.2g} times before the onset", "logits", (series.place(0),))
            )
        elif change is not None and change < 1.3:
            return Excluded(f"{series.name} was flat up to the onset")
    for series in series_like(case.run, r"att\w*[/_. ]*entropy", least=10):
        change = _before(series, case.since(series.clock))
        if change is not None and change < SUNK:
            out.append(
                Evidence(4.5, f"{series.name} sank to {change:.0%} before the onset", "logits", (series.place(0),))
            )
    return out


def _before(series: Series, onset: float | None) -> float | None:
    """The level just before the onset over the level at the start; None where that is not recorded."""
    if onset is None:
        return None
    x = series.values[series.finite & (series.at < onset)]
    if len(x) < 10:
        return None
    k = max(2, len(x) // 10)
    first, last = float(np.median(x[:k])), float(np.median(x[-k:]))
    return last / first if first > 0 else None


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Normalise queries and keys, or add a z-loss, from a checkpoint before the onset.", (), "try",
               "the largest logit stays in its band"),
    )  # fmt: skip
