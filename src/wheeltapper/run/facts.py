"""Facts and checkpoints of a run: what its files say, each once, and what their clocks prove together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from wheeltapper.reading.record import Fact, Floats, Reading
from wheeltapper.run.model import Checkpoint, Series


def facts_of(readings: Sequence[Reading], series: Mapping[str, Series]) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for reading in readings:
        for fact in reading.facts:
            facts[fact.name] = fact  # a later launch knows better
    if "steps_per_epoch" not in facts:
        derived = _steps_per_epoch(series)
        if derived is not None:
            facts["steps_per_epoch"] = derived
    return facts


def checkpoints_of(readings: Sequence[Reading], root: str) -> tuple[Checkpoint, ...]:
    """Each file once. One that lies there and that a log names, by its path from the run's folder, is one: what the
    file itself does not tell (when it was written, its score) is taken from the last line that names it."""
    every = [checkpoint for reading in readings for checkpoint in reading.checkpoints]
    lying = {os.path.abspath(c.path): c for c in every if c.exists}
    found: dict[str, Checkpoint] = {}
    told: dict[str, Checkpoint] = {}
    for checkpoint in every:
        full = os.path.abspath(os.path.join(root, checkpoint.path))
        if not checkpoint.exists and full in lying:
            told[lying[full].path] = checkpoint
            continue
        old = found.get(checkpoint.path)
        if old is None or (checkpoint.exists and not old.exists):
            found[checkpoint.path] = checkpoint
    for path, named in told.items():
        file = found[path]
        known = file.step is not None or file.epoch is not None
        found[path] = replace(
            file,
            step=file.step if known else named.step,
            epoch=file.epoch if known else named.epoch,
            metric=file.metric or named.metric,
        )
    return tuple(found.values())


def _steps_per_epoch(series: Mapping[str, Series]) -> Fact | None:
    """From a series that carries both clocks."""
    for s in sorted(series.values(), key=lambda s: -len(s)):
        epochs, steps = s.on("epoch"), s.on("step")
        if epochs is None or steps is None or len(s) < 3:
            continue
        good = np.isfinite(epochs) & np.isfinite(steps)
        if good.sum() < 3:
            continue
        whole = whole_epochs(epochs[good], steps[good])
        if whole is not None:
            return Fact("steps_per_epoch", whole, f"the only whole number that fits steps and epochs of {s.name}", True)
        span = float(epochs[good][-1] - epochs[good][0])
        slope = float(steps[good][-1] - steps[good][0]) / span if span > 0.5 else 0.0
        if slope > 0:
            return Fact("steps_per_epoch", slope, f"slope of step against epoch in {s.name}", derived=True)
    return None


def whole_epochs(epochs: Floats, steps: Floats) -> int | None:
    """Steps per epoch where epochs are counted in whole numbers: a step s in epoch e (from 0) bounds it by
    s/(e+1) and s/e, and all bounds together may leave one number. Tried with epochs from 0 and from 1.

    >>> steps = np.array([250.0, 500.0, 1750.0, 3250.0, 4750.0])
    >>> whole_epochs(np.ceil(steps / 296), steps)
    296
    """
    if not np.all(epochs == np.round(epochs)) or len(np.unique(epochs)) < 3:
        return None
    fits: set[int] = set()
    for base in (0.0, 1.0):
        done = epochs - base
        if done.min() < 0:
            continue
        # A step is counted from 0 or from 1, so each bound is soft by one step.
        low = float(np.max((steps - 1) / (done + 1)))
        high = float(np.min((steps[done > 0] + 1) / done[done > 0])) if np.any(done > 0) else np.inf
        if high - low > 2:
            return None  # many numbers fit
        fits.update(range(int(np.ceil(low)), int(np.floor(high)) + 1))
    return fits.pop() if len(fits) == 1 else None
