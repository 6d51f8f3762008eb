"""The share of losses and scores that are not numbers.

## Definition
Values that are NaN or infinite over all values of training and held-out losses.

## Derivation
One NaN in the weights makes every later loss NaN; scattered ones come from single batches.

## Healthy band
0.

## When it misleads
Loggers that write NaN for "not evaluated".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run, Series

ABOUT = "crash"
EDGES = (1e-9, 0.05, 0.5)
BAND = (None, 1e-9)
ERRORS = frozenset(["loss", "nll", "bits", "perplexity", "mse", "rmse", "mae", "relative_error"])


def observe(run: Run) -> Reading | Unknown:
    losses = [s for s in run.series.values() if s.quantity in ERRORS and len(s) >= 3]
    if not losses:
        return Unknown("no loss is logged", ("train/loss",))
    worst = max(losses, key=lambda s: float(np.mean(not_finite(s))))
    bad = not_finite(worst)
    value = float(np.mean(bad))
    if value == 0:
        return Reading(0.0, f"all {len(worst)} values of {worst.name} are finite")
    first = int(np.flatnonzero(bad)[0])
    text = f"{worst.name} is not finite in {value:.0%} of its rows, first at {worst.clock} {worst.at[first]:g}"
    return Reading(
        value, text, series=worst.name, clock=worst.clock, onset=float(worst.at[first]), places=(worst.place(first),)
    )


def not_finite(series: Series) -> NDArray[np.bool_]:
    """Rows that are not finite, but for those before the first value: nothing was measured yet (a replay buffer that fills)."""
    bad = ~series.finite
    return bad if bad.all() else bad & (np.arange(len(bad)) >= int(np.argmin(bad)))
