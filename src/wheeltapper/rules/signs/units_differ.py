"""Two logged losses differ by a constant factor: a matter of units, not of the model.

## What it sees
A training loss that is a constant multiple (more than three) of the validation loss at every evaluation.

## Why it matters
A loss summed over accumulation steps, devices or tokens looks like a huge gap. Compared as they stand the
two curves lead to wrong conclusions, in both directions.

## How it decides
The ratio at the evaluations after the first fifth varies by less than 35 % while both losses fall by more
than that; the factor is named when it is close to a setting of the run (accumulation, devices, 100, log2 e).

## When it is wrong
A real gap that happens to stay constant; the factor is then not a whole number of anything.

## References
- huggingface/transformers pull request 34191 and issues 34263 and 35207 (loss too large by a constant
  factor).
- A constant ratio of 1/ln 2, 100, the sequence length, the world size or the accumulation is a unit.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Series
from wheeltapper.settings.knobs import Knobs

ID = "units-differ"
LIVE = True
LEAST, SPREAD = 3.0, 0.35


def look(train_loss: Series, val_loss: Series, knobs: Knobs | None = None) -> Answer:
    track = train_loss.on(val_loss.clock)
    if track is None or train_loss.quantity != val_loss.quantity:
        return Unknown("training and validation have no common clock", ("val/loss",))
    good = train_loss.finite & np.isfinite(track)
    mine = val_loss.finite & (val_loss.values > 0)
    if good.sum() < 3 or mine.sum() < 4:
        return Unknown("too few values to compare", ("val/loss",))
    x = np.interp(val_loss.at[mine], track[good], train_loss.values[good])
    y = val_loss.values[mine]
    keep = slice(len(y) // 5, None)
    ratio = x[keep] / y[keep]
    level = float(np.median(ratio))
    spread = float(ratio.max() / ratio.min()) - 1 if ratio.min() > 0 else np.inf
    moved = float(y[keep].max() / y[keep].min()) - 1
    if not (level > LEAST or level < 1 / LEAST) or spread > SPREAD or moved < 2 * spread:
        return Clear(f"training over validation loss is {level:.3g}, varying by {spread:.0%}")
    text = f"{train_loss.name} is {level:.4g} times {val_loss.name} at every evaluation (within {spread:.0%}): another unit, not a gap"
    accumulation = knobs.value("batch.accumulation") if knobs is not None else None
    if isinstance(accumulation, (int, float)) and abs(level / accumulation - 1) < 0.15:
        text += f"; accumulation is {accumulation:g}"
    return seen(ID, val_loss, text, severity="note", grade="is", onset=0, ratio=level)


CASES = {
    "finding": {"train/loss": [160.0, 80.0, 40.0, 20.0, 10.0, 5.0], "val/loss": [10.0, 5.0, 2.5, 1.26, 0.62, 0.31]},
    "clear": {"train/loss": [2.0, 1.8, 1.6, 1.5, 1.4], "val/loss": [2.1, 1.9, 1.8, 1.8, 1.8]},
    "unknown": {"train/loss": [2.0, 1.8]},
}
