"""Which smooth curve a stretch of logged learning rates follows: linear, cosine, exponential, ...

A fit counts only if it passes within one per cent of the stretch's range (or within its printed rounding) at
*every* point: schedules are exact, so a curve that merely resembles the points is not the schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wheeltapper.reading.record import Floats

Decay = Literal["linear", "cosine", "exponential", "inverse_sqrt", "polynomial"]
Miss = Callable[[Floats], float]
TOLERANCE = 0.01
MOST_POINTS = 400  # a schedule has few degrees of freedom; more points only cost time


@dataclass(frozen=True, slots=True)
class Fit:
    """A curve through the stretch: its worst miss, in units of what is allowed, and where it would end.

    `ends_at` (with the LR it ends with) is given only if the points determine it to 5 %: a few rounded points
    at the top of a cosine are met by cosines of very different lengths.
    """

    kind: Decay
    miss: float
    ends_at: float | None = None
    ends_with: float | None = None


def quantum(values: Floats) -> Floats:
    """Half the unit of the last printed digit of each value, as far as the values themselves tell it.

    Two or three different values are more often round numbers (0.1, 0.01) than rounded ones.

    >>> quantum(np.array([0.00083, 0.0025, 0.00025, 3e-05])).tolist()
    [5e-06, 5e-06, 5e-06, 5e-06]
    """
    if len(np.unique(values)) <= 3:
        return np.asarray(np.abs(values) * 1e-12)
    texts = [repr(float(v)) for v in values[:: max(1, len(values) // MOST_POINTS)] if v]
    digits = [_digits(text) for text in texts]
    if not digits:
        return np.zeros(len(values))
    decimals = max(d for d, _ in digits)
    significant = max(s for _, s in digits)
    half = np.abs(values) * 1e-12
    if decimals <= 8:  # fixed notation: 0.00083, 0.061242
        half = np.maximum(half, 0.5 * 10.0**-decimals)
    if 3 <= significant <= 7:  # %.3e and its like; one or two digits are more often a round number
        size = np.floor(np.log10(np.where(values > 0, values, 1.0)))
        half = np.maximum(half, np.where(values > 0, 0.5 * 10.0 ** (size - significant + 1), 0.0))
    return np.asarray(half)


def _digits(text: str) -> tuple[int, int]:
    """Decimals and significant digits of a number as Python prints it."""
    mantissa, _, exponent = text.partition("e")
    whole, _, part = mantissa.partition(".")
    part = part.rstrip("0") if not exponent else part.removesuffix("0") if part == "0" else part
    decimals = max(0, len(part) - (int(exponent) if exponent else 0))
    return decimals, len((whole + part).lstrip("-0"))


def fits(t: Floats, v: Floats, rounding: Floats, origins: tuple[float, ...]) -> list[Fit]:
    """Every curve that passes, best first. `origins` are where a cosine may count its time from."""
    if len(t) < 4:
        return []
    pick = np.unique(np.linspace(0, len(t) - 1, min(len(t), MOST_POINTS)).round().astype(int))
    t, v, rounding = t[pick], v[pick], rounding[pick]
    span = float(np.ptp(v))
    if span <= 0:
        return []
    allowed = np.maximum(TOLERANCE * span, 2 * rounding)
    # The miss that the rounding alone explains; above it a curve is an approximation.
    exact = float(np.min(np.maximum(2 * rounding, 1e-7 * float(v.max())) / allowed))

    def miss(model: Floats) -> float:
        return float(np.max(np.abs(model - v) / allowed))

    found = [
        fit
        for make in (_linear, _exponential, _inverse_sqrt, _polynomial)
        if (fit := make(t, v, miss, exact)) is not None and fit.miss <= 1
    ]
    for origin in sorted(set(origins)):
        cosine = _cosine(t, v, origin, allowed, exact)
        if cosine is not None and cosine.miss <= 1:
            found.append(cosine)

    # A straight line has the fewest parameters, so it wins where it is within the rounding, or nearly as close.
    def order(fit: Fit) -> float:
        if fit.kind == "linear":
            return -1.0 if fit.miss <= exact else 0.5 * fit.miss
        return fit.miss

    return sorted(found, key=order)


def _line(x: Floats, y: Floats, weight: Floats | None = None) -> tuple[float, float]:
    """Intercept and slope by (weighted) least squares."""
    w = np.ones(len(x)) if weight is None else weight
    mx, my = float(np.average(x, weights=w)), float(np.average(y, weights=w))
    slope = float(np.sum(w * (x - mx) * (y - my)) / np.sum(w * (x - mx) ** 2))
    return my - slope * mx, slope


def _linear(t: Floats, v: Floats, miss: Miss, exact: float) -> Fit:
    start, slope = _line(t, v)
    far = miss(start + slope * t)
    # A line may tilt by twice its miss over the stretch: 5 % of the fall is the most that names its end.
    known = slope < 0 and 2 * max(far, exact) * TOLERANCE < 0.05
    return Fit("linear", far, -start / slope if known else None, 0.0 if known else None)


def _exponential(t: Floats, v: Floats, miss: Miss, exact: float) -> Fit | None:
    if (v <= 0).any():
        return None
    start, slope = _line(t, np.log(v), v**2)  # so that the LR's own error counts, not that of its log
    return Fit("exponential", miss(np.exp(start + slope * t)))


def _inverse_sqrt(t: Floats, v: Floats, miss: Miss, exact: float) -> Fit | None:
    if (v <= 0).any() or v[-1] >= v[0]:
        return None
    start, slope = _line(t, 1 / v**2, v**6)  # the error of 1/v² is that of v times 2/v³
    inverse = start + slope * t
    return Fit("inverse_sqrt", miss(1 / np.sqrt(inverse))) if slope > 0 and (inverse > 0).all() else None


def _polynomial(t: Floats, v: Floats, miss: Miss, exact: float) -> Fit | None:
    """(1 - x/T)^p to zero; linear itself (p = 1) is left to `_linear`."""
    if v[-1] >= v[0] or v[0] <= 0:
        return None
    x = t - t[0]
    best: Fit | None = None
    for reach in x[-1] * np.geomspace(1.0 + 1e-9, 6.0, 60):
        left = 1 - x / reach
        keep = (left > 1e-6) & (v > 0)
        if keep.sum() < 4:
            continue
        scale, power = _line(np.log(left[keep]), np.log(v[keep]), v[keep] ** 2)
        if not 0.2 < power < 6 or abs(power - 1) < 0.05:
            continue
        fit = Fit("polynomial", miss(np.exp(scale) * np.maximum(left, 0) ** power), float(t[0] + reach), 0.0)
        if best is None or fit.miss < best.miss:
            best = fit
    return best


def _cosine(t: Floats, v: Floats, origin: float, allowed: Floats, exact: float) -> Fit | None:
    """low + height·(1 + cos(π(t - origin)/T))/2 with the T that misses least; the LR is never negative."""
    x = t - origin
    if x[-1] <= 0 or x[0] < -1e-9 * abs(x[-1]):
        return None
    top = float(v.max())

    def at(lengths: Floats) -> tuple[Floats, Floats]:
        """The miss and the lowest LR for each length, by least squares in low and height."""
        wave = (1 + np.cos(np.pi * x[None, :] / lengths[:, None])) / 2
        centred = wave - wave.mean(axis=1, keepdims=True)
        power = np.maximum((centred**2).sum(axis=1), 1e-300)
        height = (centred * (v - v.mean())).sum(axis=1) / power
        low = v.mean() - height * wave.mean(axis=1)
        miss = np.max(np.abs(low[:, None] + height[:, None] * wave - v) / allowed, axis=1)
        miss[(height <= 0) | (low < -0.02 * top) | (power < 1e-20)] = np.inf
        return miss, low

    lengths = x[-1] * np.geomspace(0.999, 30.0, 160)
    for _ in range(5):  # each round narrows the bracket tenfold
        misses, lows = at(lengths)
        best = int(np.argmin(misses))
        if not np.isfinite(misses[best]):
            return None
        around = lengths[max(0, best - 1)], lengths[min(len(lengths) - 1, best + 1)]
        length, score, low = float(lengths[best]), float(misses[best]), float(lows[best])
        lengths = np.linspace(*around, 21)
    spread, _ = at(np.array([0.95 * length, 1.05 * length]))
    known = float(spread.min()) > max(exact, 2 * score)
    return Fit("cosine", score, origin + length if known else None, max(low, 0.0) if known else None)
