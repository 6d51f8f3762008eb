"""The training loss swings up and down in a rhythm of its own.

## What it sees
A regular swing of the training loss, from row to row or over longer stretches, that follows neither the epoch
nor an interval of the settings.

## Why it matters
A fast swing between two levels comes from data sets or steps that alternate; a slow one from a cyclic
learning rate or momentum. A loss that is merely noisy does not swing, and noise at the edge of stability is
normal.

## How it decides
The logarithm of the loss in at most 1000 block means, less its running median, with its correlation from row
to row taken out. Fisher's test for one frequency: the largest share of the power, g, among m frequencies has
a chance of at most m (1 - g)^(m-1). It counts at p < 1e-6, with at least six whole swings, and a swing of 10
% of the loss. Rhythms of the epoch, and of a cyclic learning rate, are left to those. A watch where the
learning rate has no such rhythm and the swing is 30 % or more, else a note.

## When it is wrong
A periodic order of the data with a length that the settings do not tell.

## References
- Cohen et al. 2021, Gradient Descent on Neural Networks Typically Occurs at the Edge of Stability
  (arXiv:2103.00065).
- PyTorch, torch/optim/lr_scheduler.py.
- The test shifts each cycle at random against the others: a permutation test within blocks.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.rules.signs.epoch_sawtooth import epochs_of
from wheeltapper.run.model import Run, Series
from wheeltapper.simulate.lr_shape import LrShape
from wheeltapper.study.curves import Task
from wheeltapper.study.statistics import running_median

ID = "oscillating"
LIVE = True
ROWS, BLOCKS, P, SWING, WATCH, SWINGS = 100, 1000, 1e-6, 0.10, 0.30, 6


def look(run: Run, train_loss: Series, task: Task, lr_shape: LrShape | None = None) -> Answer:
    good = np.flatnonzero(train_loss.finite & (train_loss.values > 0))
    if len(good) < ROWS or task.diffusion:
        return Unknown(f"fewer than {ROWS} positive losses of a deterministic objective", ("a loss logged more often",))
    if train_loss.window == "running":
        return Unknown("the loss is a running mean that starts anew", ("the loss of single batches",))
    x = np.log(train_loss.values[good])
    size = -(-len(x) // BLOCKS)
    x = x[: len(x) // size * size].reshape(-1, size).mean(axis=1)
    n = len(x)
    residual = x - running_median(x, max(5, n // SWINGS))
    residual -= residual.mean()
    power = float(residual @ residual)
    if power <= 0:
        return Clear("the loss has no residual")
    rho = float(np.clip(residual[1:] @ residual[:-1] / power, 0.0, 0.98))
    white = residual[1:] - rho * residual[:-1]
    spectrum = np.abs(np.fft.rfft(white * np.hanning(len(white)))) ** 2
    spectrum = spectrum[SWINGS:]
    m = len(spectrum)
    k = int(np.argmax(spectrum))
    # The taper spreads one frequency over three bins, and leaves about half of them independent.
    share = float(spectrum[max(0, k - 1) : k + 2].sum() / spectrum.sum())
    p = min(1.0, m * (1 - share) ** (m / 2 - 1)) if m > 10 else 1.0
    rows = len(white) / (k + SWINGS) * size
    tone = 2 * float(np.abs(np.fft.rfft(residual))[max(1, k + SWINGS - 1) : k + SWINGS + 2].max()) / n
    swing = 2 * tone
    if p >= P or swing < SWING:
        return Clear(f"no rhythm (p = {p:.2g}, a swing of {swing:.1%})")
    if _is_epoch(run, train_loss, rows):
        return Clear(f"a rhythm of {rows:.4g} rows, which is the epoch's")
    cyclic = lr_shape is not None and lr_shape.kind in ("cyclic", "restarts")
    step = float(np.median(np.diff(train_loss.at[good]))) * rows
    text = f"{train_loss.name} swings by {swing:.0%} of its level every {step:,.4g} {train_loss.clock}s ({n * size / rows:.0f} times)"
    text += ", as its learning rate does" if cyclic else ""
    return seen(
        ID, train_loss, text, severity="watch" if swing >= WATCH and not cyclic else "note", grade="is-p", onset=0, p=p,
        period=step, swing=swing,
    )  # fmt: skip


def _is_epoch(run: Run, series: Series, rows: float) -> bool:
    """The rhythm, or a whole number of them, is an epoch within 3 %."""
    at = epochs_of(run, series)
    if at is None:
        return False
    epochs = float(np.median(np.diff(at))) * rows
    times = 1 / epochs if epochs < 1 else epochs
    return epochs > 0 and abs(times - round(times)) < 0.03 * times


_t = np.arange(600)
_loss = 2.0 * (1 + _t / 50.0) ** -0.3 * np.exp(0.02 * np.random.default_rng(6).standard_normal(600))
CASES = {
    "finding": {"train/loss": (_loss * (1 + 0.25 * np.sin(2 * np.pi * _t / 37))).tolist()},
    "clear": {"train/loss": _loss.tolist()},
    "two levels": {"train/loss": (_loss * (1 + 0.3 * (_t % 2))).tolist(), "expect": "finding"},
    "unknown": {"train/loss": [1.0, 0.9]},
}
