"""The training loss repeats a shape in every epoch.

## What it sees
A step or a tooth of the training loss at the same phase of each epoch: a sudden drop at its start and a slow
rise within, or a fixed pattern that comes back with the data.

## Why it matters
It is usually read as over-fitting. A drop at the boundary is documented as normal with Adam and shuffling
without replacement; a running mean that starts anew each epoch looks the same. A pattern that repeats in
detail means that the data come in the same order every time.

## How it decides
The residual about the level of each epoch in eight phases, tested against epochs that are each shifted at
random, p < 0.002, and at least 3 % of the loss (2 % gave a note on 26 of the 621 records at hand, 3 %
on 7; LOG.md, 2026-11-16) and half the noise of a value. At least five whole epochs with a value in each
phase. The same order: the shape of one epoch correlates with the next at 0.9 or more without being a plain
tooth; then a watch. Otherwise a note.

## When it is wrong
A learning rate that changes by epoch, a short last batch, or an evaluation that leaves a mode switched.

## References
- The Epochal Sawtooth Effect (arXiv:2410.10056).
- PyTorch, torch/utils/data/distributed.py.
- The test shifts each cycle at random against the others: a permutation test within blocks.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Severity, Unknown
from wheeltapper.reading.record import Floats
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Run, Series
from wheeltapper.study.phases import phases_of

ID = "epoch-sawtooth"
LIVE = True
P, SHARE, LIKE = 0.002, 0.03, 0.9


def look(run: Run, train_loss: Series) -> Answer:
    at = epochs_of(run, train_loss)
    if at is None:
        return Unknown("positions within the epoch are not known", ("steps per epoch",))
    good = train_loss.finite & np.isfinite(at)
    if int(good.sum()) < 40:
        return Unknown("fewer than five whole epochs with eight values each", ("a loss logged more often",))
    level = max(abs(float(np.median(train_loss.values[good]))), 1e-300)
    found = phases_of(at[good], train_loss.values[good], 1.0, least=SHARE * level)
    if found is None:
        return Unknown("fewer than five whole epochs with eight values each", ("a loss logged more often",))
    share = found.amplitude / level
    if found.p >= P or share < SHARE or found.amplitude < 0.5 * found.noise:
        return Clear(f"no shape within the epoch ({share:.1%} of the loss, p = {found.p:.2g})")
    falls = bool((np.diff(found.means) > -0.25 * found.amplitude).all())
    sinks = bool((np.diff(found.means) < 0.25 * found.amplitude).all())
    severity: Severity = "note"
    if train_loss.window == "running":
        how = "the loss is a running mean that starts anew each epoch"
    elif falls or sinks:
        way = (
            "drops from one epoch to the next more than within" if falls else "falls within the epoch and starts higher"
        )
        how = f"it {way}, which is common and no over-fitting by itself"
    elif found.likeness >= LIKE:
        how = f"the shape is the same each time (correlation {found.likeness:.2f}): the data come in one order"
        severity = "watch"
    else:
        how = "the cause may be the data order, the schedule or the logging"
    text = f"{train_loss.name} repeats a shape every epoch, {share:.1%} of its level, over {found.cycles} epochs: {how}"
    return seen(
        ID, train_loss, text, severity=severity, grade="is-p", onset=0, p=found.p, share=share, likeness=found.likeness,
    )  # fmt: skip


def epochs_of(run: Run, series: Series) -> Floats | None:
    """Positions in epochs with their fractions."""
    per = run.fact("steps_per_epoch")
    if series.clock == "step" and isinstance(per, (int, float)) and per > 1:
        return np.asarray(series.at / float(per), dtype=np.float64)
    at = series.on("epoch")
    if at is None or not np.isfinite(at).any() or np.all(np.mod(at[np.isfinite(at)], 1) == 0):
        return None
    return at


def _noise(n: int) -> Floats:
    return np.random.default_rng(3).standard_normal(n)


CASES = {
    "finding": {
        "train/loss": [2.0 - 0.1 * (i // 50) + 0.002 * (i % 50) + 0.02 * float(_noise(1)[0]) for i in range(500)],
        "steps_per_epoch": 50,
    },
    "clear": {"train/loss": (2.0 - 0.001 * np.arange(500) + 0.02 * _noise(500)).tolist(), "steps_per_epoch": 50},
    "unknown": {"train/loss": [1.0, 0.9]},
}
