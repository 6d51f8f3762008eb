"""The logged loss is a running mean, not the loss itself.

## What it sees
A training loss that moves far too smoothly from row to row.

## Why it matters
A mean over many steps hides spikes, and shows everything late, by about as many steps as it averages. Onsets
read from it are too late.

## How it decides
Either the format says so (the mean since the start of the epoch, as progress bars and meters print it); or
the residual about the trend has a correlation of 0.98 or more from row to row, on 500 rows, and the spread of
the steps from row to row is below 0.2 % of the level: an average with a memory of fifty rows.
Independent batches give no correlation; a loss on the whole data set has no noise at all, so a residual below
0.2 % of the level is left alone. Always a note.

## When it is wrong
Full-batch training and very large batches are smooth by nature.

## References
- Our simulation: a slope test at 5 % fires on 32 % of trendless series with autocorrelation 0.6, on 9 %
  after the correction by n(1-r)/(1+r).
- A running mean with factor a has lag-1 autocorrelation a, and delays an onset by 1/(1-a) rows.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Series

ID = "too-smooth"
LIVE = True
ROWS, MOST, STEP, NOISE = 500, 20_000, 0.002, 0.002
SHOWN = 0.925  # what a correlation of 0.98 leaves once a line is taken out of every 200 rows (LOG.md, 2026-11-16)


def look(train_loss: Series) -> Answer:
    x = train_loss.values[train_loss.finite][-MOST:]
    if train_loss.window == "running":
        text = f"{train_loss.name} is logged as a running mean over {len(train_loss)} rows: spikes are hidden and onsets come late"
        return seen(ID, train_loss, text, severity="note", grade="is", onset=0, rho=1.0)
    if len(x) < ROWS or train_loss.window == "epoch":
        return Unknown(f"fewer than {ROWS} values within an epoch", ("a loss logged more often",))
    # The trend is straight over 200 rows; the residual about it is noise, or what an average makes of noise.
    width = 200
    whole = x[: len(x) // width * width].reshape(-1, width)
    t = np.linspace(-1, 1, width)
    residual = whole - whole.mean(axis=1, keepdims=True)
    residual = residual - np.outer(residual @ t / float(t @ t), t)
    power = (residual**2).sum(axis=1)
    usable = power > 1e-18 * width * np.maximum(whole.mean(axis=1) ** 2, 1e-300)
    if usable.sum() < 2:
        return Clear("the loss has no noise")
    rho = float(np.median((residual[:, 1:] * residual[:, :-1]).sum(axis=1)[usable] / power[usable]))
    level = max(abs(float(np.median(x))), 1e-300)
    step = float(np.median(np.abs(np.diff(x)))) / level
    noise = float(np.sqrt(np.median(power) / width)) / level
    if rho < SHOWN or step > STEP or noise < NOISE:
        return Clear(f"values from row to row correlate at {rho:.2f} and move by {step:.2%}")
    text = f"{train_loss.name} correlates at {rho:.2f} from row to row about its trend and moves by {step:.2%} a row: it looks like a running mean"
    return seen(ID, train_loss, text, severity="note", grade="suspected", onset=0, rho=rho, step=step)


def _rows(memory: float) -> list[float]:
    rng = np.random.default_rng(5)
    raw = 2.0 * (1 + np.arange(2000) / 300.0) ** -0.4 + 0.1 * rng.standard_normal(2000)
    out = [float(raw[0])]
    for value in raw[1:]:
        out.append(memory * out[-1] + (1 - memory) * float(value))
    return out


CASES = {
    "finding": {"train/loss": _rows(0.99)},
    "clear": {"train/loss": _rows(0.0)},
    "near miss": {"train/loss": _rows(0.6), "expect": "clear"},
    "unknown": {"train/loss": [1.0, 0.9]},
}
