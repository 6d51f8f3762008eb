"""What repeats with a known period: phases of a series within an epoch or an interval (ST-07)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wheeltapper.reading.record import Floats

CYCLES = 100  # enough for any test, and bounded time and memory


@dataclass(frozen=True, slots=True)
class Phases:
    """Mean residual by phase, over whole cycles, and how surely it is not chance."""

    means: Floats  # one per bin; phase 0 is the start of the cycle
    amplitude: float  # largest minus smallest mean
    noise: float  # spread of a single value about its phase
    p: float
    cycles: int
    likeness: float  # mean correlation of a cycle's residual with the next one's: 1 means the same again


def phases_of(
    at: Floats, values: Floats, period: float, *, least: float, bins: int = 8, draws: int = 999
) -> Phases | None:
    """The residual about the level of each cycle, by phase. None: fewer than five whole cycles, or too few points.

    The level is a straight line through the means of the neighbouring cycles, so that a trend is no phase. p comes
    from shifting every cycle by a random phase of its own: that keeps the correlation inside a cycle, and destroys
    only what the cycles have in common. Below an amplitude of `least` nobody asks for p, and it is 1.
    """
    cycle = np.floor(at / period + 1e-9).astype(np.int64)
    phase = np.minimum((np.mod(at / period + 1e-9, 1.0) * bins).astype(np.int64), bins - 1)
    first, last = int(cycle.min()), int(cycle.max())
    if last - first < 6 or (last - first) * bins > 4 * len(values):  # every phase of a cycle needs its value
        return None
    chosen = np.unique(np.linspace(first + 1, last - 1, min(CYCLES, last - first - 1)).round().astype(np.int64))
    cell = (cycle - first) * bins + phase
    size = (last - first + 1) * bins
    counts = np.bincount(cell, minlength=size).astype(np.float64)
    sums = np.bincount(cell, weights=values, minlength=size)
    table = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0).reshape(-1, bins)
    middle = (np.arange(bins) + 0.5) / bins - 0.5
    rows = []
    for c in chosen - first:
        near = table[c - 1 : c + 2]
        if not np.isfinite(near).all():
            continue
        before, level, after = np.median(near, axis=1)
        rows.append(near[1] - level - (after - before) / 2 * middle)
    if len(rows) < 5:
        return None
    residual = np.array(rows)
    residual -= residual.mean(axis=1, keepdims=True)
    means = np.median(residual, axis=0)
    spread = float(np.median(np.abs(residual - means)) * 1.4826)
    amplitude = float(np.ptp(means))
    p = _chance(residual, draws) if amplitude >= least else 1.0
    power = (residual**2).sum(axis=1)
    alike = (residual[1:] * residual[:-1]).sum(axis=1) / np.sqrt(np.maximum(power[1:] * power[:-1], 1e-300))
    return Phases(means, amplitude, spread, p, len(rows), float(np.median(alike)))


def _chance(residual: Floats, draws: int) -> float:
    cycles, bins = residual.shape
    rng = np.random.default_rng(cycles)
    score = float((residual.mean(axis=0) ** 2).sum())
    shift = rng.integers(0, bins, size=(draws, cycles, 1))
    moved = np.take_along_axis(residual[None], (np.arange(bins) + shift) % bins, axis=2)
    beaten = int(((moved.mean(axis=1) ** 2).sum(axis=1) >= score).sum())
    return (beaten + 1) / (draws + 1)
