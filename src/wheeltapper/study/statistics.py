"""The statistics every sign uses (KNOWLEDGE §1): robust, corrected for autocorrelation and selection.

All functions are pure and take plain arrays. `bad` means "larger is worse": a metric that should rise is
negated by the caller (see `badness`), so that every test is written once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from wheeltapper.reading.record import Floats

MAD = 1.4826  # makes the median absolute deviation an estimate of sigma for normal noise


@dataclass(frozen=True, slots=True)
class Noise:
    """Trajectory noise of a series after its trend is taken out (ST-01, ST-02)."""

    sigma: float
    rho: float  # lag-1 autocorrelation of the residual, in [0, 0.95]


def robust_sigma(x: Floats) -> float:
    x = x[np.isfinite(x)]
    return float(MAD * np.median(np.abs(x - np.median(x)))) if len(x) > 1 else 0.0


def running_median(x: Floats, width: int) -> Floats:
    """Median over a centred window of odd width; edges use what is there. Thinned for very long series."""
    n = len(x)
    width = max(1, min(width | 1, n if n % 2 else n - 1))
    if width <= 1 or n < 3:
        return x.copy()
    half = width // 2
    padded = np.concatenate([np.full(half, np.nan), x, np.full(half, np.nan)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)
    stride = max(1, math.ceil(n * width / 1_000_000))
    spots = np.unique(np.concatenate([np.arange(0, n, stride), [n - 1]]))
    inside = (spots >= half) & (spots < n - half)
    out = np.empty(len(spots))
    out[inside] = np.median(windows[spots[inside]], axis=1)  # several times faster than nanmedian
    if not inside.all():
        out[~inside] = np.nanmedian(windows[spots[~inside]], axis=1)
    return out if stride == 1 else np.asarray(np.interp(np.arange(n), spots, out), dtype=np.float64)


def noise_of(x: Floats) -> Noise:
    """Sigma and lag-1 correlation of the residual about a running median.

    The window is a tenth of the series (5 to 101 points): wide enough that the median does not follow the
    noise, narrow enough that a learning curve is straight inside it.
    """
    x = x[np.isfinite(x)]
    n = len(x)
    if n < 4:
        return Noise(float(np.std(x)) if n > 1 else 0.0, 0.0)
    width = int(np.clip(n // 10, 5, 101))
    residual = x - running_median(x, width)
    # A running median leaves out a share of the variance of its own window; widths >= 5 make it small.
    from_residual = robust_sigma(residual) / math.sqrt(max(1.0 - 1.0 / width, 0.5))
    steps = np.diff(x)
    from_steps = MAD * float(np.median(np.abs(steps - np.median(steps)))) / math.sqrt(2)
    centred = residual - residual.mean()
    centred = centred / max(float(np.max(np.abs(centred))), 1e-300)  # squares of values beyond 1e154 would overflow
    power = float(np.dot(centred, centred))
    rho = float(np.dot(centred[1:], centred[:-1]) / power) if power > 0 else 0.0
    return Noise(max(from_residual, from_steps), float(np.clip(rho, 0.0, 0.95)))


def badness(values: Floats, better: str) -> Floats:
    return -values if better == "up" else values


def block_medians(x: Floats, most: int) -> tuple[Floats, Floats]:
    """At most `most` medians of consecutive blocks, and the mean index of each block."""
    n = len(x)
    if n <= most:
        return np.arange(n, dtype=np.float64), x.copy()
    edges = np.linspace(0, n, most + 1).astype(int)
    middles = np.array([(a + b - 1) / 2 for a, b in pairwise(edges)])
    medians = np.array([np.median(x[a:b]) for a, b in pairwise(edges)])
    return middles, medians


@lru_cache(maxsize=512)
def _flat_null(n: int, rho10: int, tail: int, draws: int = 1000) -> Floats:
    """Distribution of (mean of last `tail` − best) / sigma for a flat AR(1) series of n points (ST-03)."""
    rng = np.random.default_rng(n * 1000 + rho10 * 10 + tail)
    rho = rho10 / 10
    shocks = rng.standard_normal((draws, n)) * math.sqrt(1 - rho * rho)
    x = np.empty_like(shocks)
    x[:, 0] = rng.standard_normal(draws)
    for i in range(1, n):
        x[:, i] = rho * x[:, i - 1] + shocks[:, i]
    return np.sort(x[:, n - tail :].mean(axis=1) - x.min(axis=1))


def p_of_drop(drop_in_sigma: float, n: int, rho: float, tail: int) -> float:
    """How often a flat, noisy series shows so large a fall from its best: the selection-corrected p.

    Beyond the simulated range the normal tail takes over, anchored at the simulated 99th percentile.
    """
    if n < 2:
        return 1.0
    tail = max(1, min(tail, n - 1))
    rho = rho if math.isfinite(rho) else 0.0
    if not math.isfinite(drop_in_sigma):
        return 1e-300 if drop_in_sigma > 0 else 1.0
    null = _flat_null(min(n, 200), round(min(max(rho, 0.0), 0.9) * 10), min(tail, 40))
    above = float(np.mean(null >= drop_in_sigma))
    if above > 0.01:
        return above
    edge = float(np.quantile(null, 0.99))
    spread = math.sqrt(1.0 + 1.0 / tail)
    z_edge = 2.326
    z = z_edge + (drop_in_sigma - edge) / spread
    return max(0.5 * math.erfc(z / math.sqrt(2)), 1e-300)


@dataclass(frozen=True, slots=True)
class Fall:
    """How far a series ended from its best. All in the series' own units, as badness."""

    best: float  # level of the best stretch
    best_index: int
    last: float  # level of the end
    first: float  # level of the start
    drop: float  # last − best, >= 0
    gain: float  # first − best: what had been won
    share: float  # drop / gain: how much of it was lost again; inf if nothing had been won
    p: float
    onset_index: int  # the first point that left the best level for good
    sigma: float


def fall_from_best(bad: Floats) -> Fall | None:
    """The fall from the best level to the end of the series, with its selection-corrected p."""
    good = np.flatnonzero(np.isfinite(bad))
    x = bad[good]
    n = len(x)
    if n < 4:
        return None
    noise = noise_of(x)
    tail = max(1, min(n // 10, 20)) if n >= 20 else (2 if n >= 8 else 1)
    middles, levels = block_medians(x, 200)
    per_block = n / len(levels)
    smooth = running_median(levels, 3) if len(levels) >= 20 else levels
    spot = int(np.argmin(smooth[: max(1, len(smooth) - 1)]))
    best = float(smooth[spot])
    best_index = round(float(middles[spot]))
    last = float(np.median(x[-max(tail, 1) :]))
    head = max(1, min(tail, 3))
    first = float(np.median(x[:head]))
    drop = max(0.0, last - best)
    # The noise of a block median is that of a point over the root of the block's effective length.
    effective = max(1.0, per_block * (1 - noise.rho) / (1 + noise.rho))
    sigma = max(noise.sigma / math.sqrt(effective), 1e-12 * max(abs(best), abs(last), 1e-300))
    p = p_of_drop(drop / sigma, len(levels), noise.rho if per_block < 2 else 0.0, max(1, round(tail / per_block)))
    gain = first - best
    share = drop / gain if gain > 0 else math.inf
    if x.min() > 0 and 0.03 * drop > max(first, best):
        # A loss that explodes grows by factors: on a linear axis all but its last points lie "near the best",
        # above where the run began. Its onset is looked for in the logarithm.
        logs = np.log(x)
        grown = math.log(last / best)
        onset, best_index = _onset(logs, best_index, math.log(best), grown, noise_of(logs).sigma)
    else:
        onset, best_index = _onset(x, best_index, best, drop, noise.sigma)
    return Fall(best, int(good[best_index]), last, first, drop, gain, share, p, int(good[onset]), noise.sigma)


def lag_noise(x: Floats) -> Noise:
    """Sigma and lag-1 correlation from the differences at lags 1, 2, 4, ... up to an eighth of the series.

    Var(x[t+h] - x[t]) = 2 sigma^2 (1 - rho^h): a series that wanders slowly shows its spread at long lags only, where a
    running median would have taken it for a trend. A level that changes once touches few of the differences.
    """
    base = noise_of(x)
    var = [base.sigma**2]
    for h in (1, 2, 4, 8, 16):
        if h <= max(1, len(x) // 8):
            steps = x[h:] - x[:-h]
            var.append((MAD * float(np.median(np.abs(steps - np.median(steps))))) ** 2 / 2)
    most = max(var)
    rho = 1.0 - var[1] / most if most > 0 and len(var) > 1 else 0.0
    return Noise(math.sqrt(most), float(np.clip(max(rho, base.rho), 0.0, 0.95)))


@lru_cache(maxsize=256)
def _flat_blocks(n: int, rho10: int, k: int, draws: int = 1000) -> Floats:
    """Distribution of (mean of the last k - best mean of k successive ones before) / sigma for a flat AR(1) series."""
    rng = np.random.default_rng(n * 1000 + rho10 * 10 + k)
    rho = rho10 / 10
    shocks = rng.standard_normal((draws, n)) * math.sqrt(1 - rho * rho)
    x = np.empty_like(shocks)
    x[:, 0] = rng.standard_normal(draws)
    for i in range(1, n):
        x[:, i] = rho * x[:, i - 1] + shocks[:, i]
    sums = np.concatenate([np.zeros((draws, 1)), np.cumsum(x, axis=1)], axis=1)
    means = (sums[:, k:] - sums[:, :-k]) / k
    return np.sort(means[:, -1] - means[:, : n - 2 * k + 1].min(axis=1))


SHARED = 40  # values: with fewer, slow wandering cannot be told from a fall (20 values at rho 0.6: 1 in 10)
BACK = 0.25  # of the fall: a series that was worse in between by more than this is on its way back, or wanders
MEDIANS = 1.25  # the spread of a median of normal values against that of their mean


def sustained_fall(bad: Floats) -> Fall | None:
    """A fall that many neighbouring values share: the median of the last k against the best median of k successive ones
    before it, for a tenth, a fifth and a third of the series.

    Single values may scatter so widely that none of them proves a fall, and all of them together do. The noise is that of
    `lag_noise`, the null a flat AR(1) series of the same length, with the best block picked in it as here; p is multiplied by
    the number of lengths tried. None: too short, or the last block is not nearly the worst since the best.
    """
    fall = fall_from_best(bad)
    good = np.flatnonzero(np.isfinite(bad))
    if fall is None or len(good) < SHARED:
        return None
    middles, x = block_medians(bad[good], 200)
    n = len(x)
    noise = lag_noise(x[n // 4 :])  # the first descent is no noise
    found: list[tuple[float, float, float, int, int]] = []
    sizes = sorted({size for size in (n // 10, n // 5, n // 3) if size >= 3})
    for k in sizes:
        levels = np.median(np.lib.stride_tricks.sliding_window_view(x, k), axis=1)
        spot = int(np.argmin(levels[: n - 2 * k + 1]))
        drop = float(levels[-1] - levels[spot])
        if drop <= 0 or float(levels[spot:].max() - levels[-1]) > BACK * drop:
            continue
        null = _flat_blocks(n, math.ceil(min(noise.rho, 0.9) * 10 - 1e-9), k)
        z = drop / max(MEDIANS * noise.sigma, 1e-12 * max(abs(fall.best), abs(fall.last), 1e-300))
        p = float(np.mean(null >= z))
        if p <= 0.01:  # beyond what was drawn the normal tail takes over, anchored at the 99th percentile
            p = 0.5 * math.erfc((2.326 + (z - float(np.quantile(null, 0.99))) / float(null.std())) / math.sqrt(2))
        found.append((p, float(levels[spot]), float(levels[-1]), spot, k))
    if not found:
        return None
    p, best, last, spot, k = min(found)
    gain, drop = fall.first - best, last - best
    at = int(good[round(float(middles[min(spot + k // 2, n - 1)]))])
    left = int(good[round(float(middles[min(spot + k, n - 1)]))])
    share = drop / gain if gain > 0 else math.inf
    p = max(min(1.0, p * len(sizes)), 1e-300)
    return Fall(best, at, last, fall.first, drop, gain, share, p, left, noise.sigma)


def _onset(x: Floats, best_index: int, best: float, drop: float, sigma: float) -> tuple[int, int]:
    """Where the fall began, and where the best was.

    An abrupt fall (most of it within three points) begins at its first bad point. A slow one begins at the
    best point itself: that is the moment after which it only got worse. Crossings are looked for in a
    running median, so that one lucky point late in the fall does not move the onset.
    """
    n = len(x)
    width = int(np.clip(n // 20, 1, 51)) | 1
    smooth = running_median(x, width) if width > 1 else x
    quiet = sigma / math.sqrt((width + 1) / 2)
    near = best + min(max(2.0 * quiet, 0.03 * drop), drop / 3)
    inside = np.flatnonzero(smooth <= near)
    last_near = max(int(inside[-1]) if len(inside) else best_index, best_index)
    first_bad = min(last_near + 1, n - 1)
    lowest = int(np.argmin(x))
    if smooth[lowest] <= near and lowest <= first_bad:
        best_index = lowest
    soon = smooth[min(first_bad + 2, n - 1)]
    abrupt = soon - best > 0.5 * drop
    return (first_bad if abrupt else best_index), best_index


def slope_p(x: Floats, y: Floats) -> tuple[float, float]:
    """Slope of y on x and its two-sided p, corrected for lag-1 autocorrelation (ST-02)."""
    n = len(x)
    if n < 4:
        return 0.0, 1.0
    size = max(float(np.max(np.abs(y))), 1e-300)
    if size > 1e100:  # squares would overflow; the slope is scaled back
        slope, p = slope_p(x, y / size)
        return slope * size, p
    cx = x - x.mean()
    sxx = float(np.dot(cx, cx))
    if sxx == 0:
        return 0.0, 1.0
    slope = float(np.dot(cx, y - y.mean()) / sxx)
    residual = y - y.mean() - slope * cx
    power = float(np.dot(residual, residual))
    if power == 0:
        return slope, 0.0 if slope else 1.0
    rho = float(np.clip(np.dot(residual[1:], residual[:-1]) / power, 0.0, 0.95))
    inflation = (1 + rho) / (1 - rho)
    error = math.sqrt(power / max(n - 2, 1) / sxx * inflation)
    return slope, math.erfc(abs(slope) / error / math.sqrt(2)) if error > 0 else 0.0


def binomial_upper(p: float, n: int, alpha: float) -> float:
    """Upper limit of a share that is still `p` by chance on n items (normal with continuity; exact enough
    for n p >= 1; ST-10)."""
    z = math.sqrt(2) * _erfinv(1 - 2 * alpha)
    return min(1.0, p + z * math.sqrt(p * (1 - p) / max(n, 1)) + 0.5 / max(n, 1))


def _erfinv(y: float) -> float:
    """Inverse error function by Newton's method on a good start (Winitzki)."""
    a = 0.147
    ln = math.log(max(1 - y * y, 1e-300))
    first = 2 / (math.pi * a) + ln / 2
    x = math.copysign(math.sqrt(math.sqrt(first * first - ln / a) - first), y)
    for _ in range(3):
        x -= (math.erf(x) - y) / (2 / math.sqrt(math.pi) * math.exp(-x * x))
    return x


def spike_threshold(looks: int, budget: float = 0.1) -> float:
    """z above which `looks` normal values give `budget` false alarms in all (ST-06)."""
    return math.sqrt(2) * _erfinv(1 - 2 * budget / max(looks, 10))
