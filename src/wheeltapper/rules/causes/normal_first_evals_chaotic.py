"""Wild first evaluations are expected.

## What happens
Running statistics of batch norm and averaged weights (EMA) still hold much of their initial values at the first
evaluations, and the learning rate is at its start.

## How it shows
One of the first evaluations is far worse than its neighbours; later ones are calm.

## What else looks like this
A validation that is broken (stays so), divergence (comes later).

## When this is wrong
It happens again later in the run.

## Fix
Nothing to mend. Start judging after the first tenth.

## Trial
Evaluate the early checkpoint again with recomputed statistics.

## References
- Diffusers, src/diffusers/training_utils.py, EMAModel (huggingface/diffusers).
- Batch-norm statistics forget half in 6.6 updates at momentum 0.1.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import badness, noise_of

ID = "normal-first-evals-chaotic"
AREA = "evaluation"
NORMAL = True
WILD = 6.0  # times the noise of the later evaluations
LEAST = 0.1  # of the range of the whole curve: smaller setbacks trouble nobody


def expect(case: Case) -> str:
    if case.found("at-chance", "never-left-zero", "below-baseline", "impossible-value", severity="ill"):
        return ""  # a score that means nothing has no early and no late
    for series in (case.get("main_metric"), case.get("val_loss")):
        if series is not None and series.quantity not in ("return", "success") and (spot := _wild(series)) is not None:
            where = f"{series.clock.replace('_', '-')} {series.at[spot]:g}"
            return (
                f"{series.name} of {series.values[spot]:.4g} at {where} is expected so early: statistics of batch norm and "
                "averaged weights start from their initial values; it does not come again"
            )
    return ""


def _wild(series: Series) -> int | None:
    """A setback among the first tenth of the evaluations, of a size that never comes again."""
    if len(series) < 15 or not series.finite.all() or series.at[0] > series.at[-1] / len(series) + 1:
        return None  # a record that starts late does not show the first evaluations
    x = badness(series.values, series.better)
    early = max(3, len(x) // 10)
    back = np.diff(x)
    noise = max(noise_of(x[early:]).sigma, 1e-12)
    first, later = int(np.argmax(back[:early])), float(back[early:].max())
    if back[first] < LEAST * float(np.ptp(x)):
        return None
    if back[first] > WILD * noise and back[first] > 2 * later and x[-1] < x[first]:
        return first + 1
    return None
