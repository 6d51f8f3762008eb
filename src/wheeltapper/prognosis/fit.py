"""Learning-curve families and their fits (PRG-01): few parameters, linear but for one, no optimiser needed.

Each family is level + scale · shape(x; k): for every k on a grid the other two follow from least squares, so a fit is
a small table of candidates. A curve that is not improving, or whose floor lies on the wrong side, is no candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wheeltapper.reading.record import Floats

# k of each family: exponents of a power law; rates of an exponential, per length of the record.
EXPONENTS = np.linspace(0.1, 1.5, 15)
RATES = np.geomspace(0.5, 40.0, 16)


@dataclass(frozen=True, slots=True)
class Fit:
    """`bad(x) = level + scale · shape(x)`, falling towards `level`."""

    family: str
    k: float
    level: float
    scale: float
    error: float  # root mean square of the residual

    def at(self, x: Floats) -> Floats:
        return np.asarray(self.level + self.scale * SHAPES[self.family](x, self.k), dtype=np.float64)


def _power(x: Floats, k: float) -> Floats:
    return np.asarray((x + 0.02) ** -k, dtype=np.float64)  # the offset keeps the first point finite


def _exponential(x: Floats, k: float) -> Floats:
    return np.asarray(np.exp(-k * x), dtype=np.float64)


SHAPES: dict[str, Callable[[Floats, float], Floats]] = {"power": _power, "exponential": _exponential}
GRIDS = {"power": EXPONENTS, "exponential": RATES}


def fits(x: Floats, bad: Floats) -> list[Fit]:
    """The best fit of each family, best first. x runs from 0 (start) to 1 (now)."""
    out = []
    for family, grid in GRIDS.items():
        candidates = [fit for k in grid if (fit := _one(family, float(k), x, bad)) is not None]
        if candidates:
            out.append(min(candidates, key=lambda fit: fit.error))
    return sorted(out, key=lambda fit: fit.error)


def _one(family: str, k: float, x: Floats, bad: Floats) -> Fit | None:
    shape = SHAPES[family](x, k)
    design = np.column_stack([np.ones_like(x), shape])
    # Later points matter more for what comes next: weights double over the record.
    weight = np.sqrt(1.0 + x / max(float(x[-1]), 1e-12))
    solution, *_ = np.linalg.lstsq(design * weight[:, None], bad * weight, rcond=None)
    level, scale = float(solution[0]), float(solution[1])
    if scale <= 0:
        return None
    residual = bad - design @ solution
    return Fit(family, k, level, scale, float(np.sqrt(np.mean(residual**2))))
