"""Loss scaling in mixed precision: what the scale does, and what a logged scale proves (KNOWLEDGE AMP-01..07).

The scale halves when a gradient overflows (that update is skipped) and doubles after `interval` clean updates
in a row. So a logged scale bounds the number of skips exactly, and a scale that only grows proves that there
were none: a high scale is health, not an explosion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from wheeltapper.errors import InputError
from wheeltapper.reading.record import Floats
from wheeltapper.simulate.plan import refuse_endless

TOP = 2.0**127  # the last power of two that float32 holds; torch's scaler does not grow beyond it
MOST_HISTORIES = 2_000_000  # numbers of doublings gone through; a run of a million updates has half as many
TINIEST = 2.0**-149  # the smallest number that float32 holds


@dataclass(frozen=True, slots=True)
class Scaler:
    """One implementation with its settings. `hysteresis` overflows are needed for the first halving after a
    doubling. `late` is the extra clean update that DeepSpeed waits for after an overflow or the start."""

    name: str
    init: float
    interval: int
    hysteresis: int = 1
    floor: float | None = None
    aborts: bool = False  # ends the run when it overflows at the floor
    late: int = 0
    growth: float = 2.0
    backoff: float = 0.5

    def having(self, **changes: float | int | None) -> Scaler:
        """The same implementation with other settings, e.g. `TORCH.having(init=32.0)` for neosr."""
        return replace(self, **changes)  # type: ignore[arg-type]


TORCH = Scaler("torch", 2.0**16, 2000)
DEEPSPEED = Scaler("deepspeed", 2.0**16, 1000, hysteresis=2, floor=1.0, aborts=True, late=1)
MEGATRON = Scaler("megatron", 2.0**32, 1000, hysteresis=2, floor=1.0)
FAIRSEQ = Scaler("fairseq", 2.0**15, 2000, floor=1e-4, aborts=True)
SCALERS = {scaler.name: scaler for scaler in (TORCH, DEEPSPEED, MEGATRON, FAIRSEQ)}


@dataclass(frozen=True, slots=True)
class ScaleHistory:
    """`values[t]` is the scale after t updates; the run ended in update `aborted_at` (from 0), if it did."""

    values: Floats
    skipped: int
    aborted_at: int | None = None


def scale_history(scaler: Scaler, n: int, overflows: Iterable[int] = ()) -> ScaleHistory:
    """The scale over n updates when those numbered in `overflows` (from 0) overflow.

    >>> float(scale_history(TORCH, 10_000).values[-1])
    2097152.0
    """
    refuse_endless(n)
    bad = set(overflows)
    scale, clean, left, skipped = scaler.init, -scaler.late, scaler.hysteresis, 0
    values = [scale]
    for t in range(n):
        if t in bad:
            skipped += 1
            clean = -scaler.late
            left -= 1
            if left <= 0:
                lower = scale * scaler.backoff
                if scaler.floor is not None and lower < scaler.floor * (1 + 1e-9):
                    # DeepSpeed stops when it is already at the floor, fairseq when it would reach it.
                    if scaler.aborts and (scale <= scaler.floor or scaler.name == "fairseq"):
                        return ScaleHistory(np.array(values), skipped, t)
                    lower = max(lower, scaler.floor)
                scale = lower
        else:
            clean += 1
            if clean == scaler.interval:
                clean, left = 0, scaler.hysteresis
                if scale * scaler.growth <= TOP:
                    scale *= scaler.growth
        values.append(scale)
    return ScaleHistory(np.array(values), skipped)


def openai_skips(lg_loss_scale: float, updates: int, init: float = 20.0, growth: float = 1e-3) -> float:
    """Skips under OpenAI's diffusion scaler: log2 scale +0.001 a clean update, -1 a skipped one. Exact, so a
    result that is not close to a whole number means that the count of updates or the settings are not these.

    >>> round(openai_skips(20 + 0.001 * 997 - 3, 1000), 6)
    3.0
    """
    return (init + growth * updates - lg_loss_scale) / (1.0 + growth)


@dataclass(frozen=True, slots=True)
class SkipBounds:
    """At least `low` and at most `high` updates were skipped; `possible` is False if no history gives this."""

    low: int
    high: int
    possible: bool = True
    why: str = ""


def exponent_of(scale: float, init: float) -> int | None:
    """k with scale = init·2^k, or None if there is no such whole k."""
    if not (TINIEST <= scale <= TOP and init > 0):
        return None
    k = math.log2(scale / init)
    return round(k) if abs(k - round(k)) < 1e-9 else None


def skip_bounds(scaler: Scaler, updates: int, scale: float) -> SkipBounds:
    """Exact bounds on the number of skipped updates, from the scale after `updates` updates (AMP-03).

    >>> skip_bounds(TORCH, 10_000, 2.0**21)
    SkipBounds(low=0, high=0, possible=True, why='')
    >>> bounds = skip_bounds(TORCH, 10_000, 2.0**16)
    >>> bounds.low, bounds.high
    (3, 4)
    """
    _doubling(scaler)
    k = exponent_of(scale, scaler.init)
    if k is None:
        return SkipBounds(0, 0, False, f"{scale:g} is not {scaler.init:g} times a power of two")
    found = list(_feasible(scaler, updates, k, fresh=True))
    floor = scaler.floor
    if floor is not None and not scaler.aborts and scale >= floor:
        # The floor swallows halvings: overflow all along, then only the growth from the floor to this scale.
        growths = round(math.log2(scale / floor))
        most = updates - growths * scaler.interval
        if most >= math.log2(scaler.init / floor) + scaler.hysteresis - 1:
            found.append((most, most))
    if not found:
        what = f"no history of {updates} updates takes {scaler.init:g} to {scale:g}"
        return SkipBounds(0, 0, False, what + ": resumed, other settings, or another count of updates")
    low = 0 if scale >= TOP else min(a for a, _ in found)
    return SkipBounds(low, max(b for _, b in found))


def _doubling(scaler: Scaler) -> None:
    if scaler.growth != 2.0 or scaler.backoff != 0.5:
        raise InputError("skips can be counted only for a scale that doubles and halves.")


def _feasible(scaler: Scaler, updates: int, k: int, *, fresh: bool) -> Iterable[tuple[int, int]]:
    """Ranges of the number of skips B, one for each possible number of doublings G, that give 2^k.

    Clean updates form B + 1 runs; a run of L holds (L - late)//interval doublings. G - H = k, where H of the
    B overflows halve and up to hysteresis - 1 after each doubling do not. If not `fresh`, a run of unknown
    length below the interval was under way at the start, and the hysteresis may already be used up.
    """
    interval, late, free = scaler.interval, scaler.late, scaler.hysteresis - 1
    carry = 0 if fresh else interval - 1 + late
    most = (updates + carry) // interval + 1
    if most * (most if late and free else 1) > 2 * MOST_HISTORIES:
        yield 0, updates  # too many to go through: nothing is claimed
        return
    for growths in range(max(0, k), most):
        halvings = growths - k
        # DeepSpeed pays the late update once per run that holds a doubling; between such runs lie overflows.
        for grown_runs in range(min(1, growths), growths + 1 if late and free else min(1, growths) + 1):
            segments = grown_runs + 1 if late and free else growths + 1
            low = halvings + (free if fresh and halvings else 0)
            high = halvings + free * segments
            # growths·interval + late·grown_runs <= clean <= growths·interval + (B + 1)·(interval - 1 + late)
            high = min(high, updates + carry - growths * interval - late * grown_runs)
            need = updates - growths * interval - (interval - 1 + late)
            low = max(low, -(-need // (interval + late)))
            if low <= high:
                yield low, high


@dataclass(frozen=True, slots=True)
class ScaleCheck:
    """Whether a logged scale can be this scaler's. `breaks` are positions where no history fits; `resets` those
    of them where the scale came back to its initial value (scaler state not restored, AMP-15)."""

    possible: bool
    low: int  # skips in the logged stretch, at least
    high: int
    breaks: tuple[float, ...] = ()
    resets: tuple[float, ...] = ()


def check_scale_series(scaler: Scaler, at: Sequence[float] | Floats, values: Sequence[float] | Floats) -> ScaleCheck:
    """A logged scale against any history of the scaler; `at` counts its updates. Points where the log shows a
    window mean (no power of two) are passed over."""
    _doubling(scaler)
    points = [
        (float(t), float(v)) for t, v in zip(at, values, strict=True) if exponent_of(float(v), scaler.init) is not None
    ]
    low = high = 0
    breaks: list[float] = []
    resets: list[float] = []
    silent = False
    for (t0, v0), (t1, v1) in pairwise(points):
        steps = round(t1 - t0)
        if steps <= 0:
            silent = True  # rewound: a resume; the stretch is no longer one history
            continue
        k = round(math.log2(v1 / v0))
        if v1 >= TOP or (scaler.floor is not None and not scaler.aborts and min(v0, v1) <= scaler.floor):
            high += steps  # at a bound the scale stops telling
            silent = True
            continue
        found = list(_feasible(scaler, steps, k, fresh=False))
        if found:
            low += min(a for a, _ in found)
            high += max(b for _, b in found)
        else:
            breaks.append(t1)
            if v1 == scaler.init:
                resets.append(t1)
    if len(points) > 1 and not breaks and not silent:
        # The stretch as a whole bounds the count as well, tighter from above: only its own start is unknown.
        (t0, v0), (t1, v1) = points[0], points[-1]
        fresh = t0 == 0 and v0 == scaler.init
        whole = list(_feasible(scaler, round(t1 - t0), round(math.log2(v1 / v0)), fresh=fresh))
        if whole:
            low, high = max(low, min(a for a, _ in whole)), min(high, max(b for _, b in whole))
        else:
            breaks.append(t1)
    return ScaleCheck(not breaks, low, high, tuple(breaks), tuple(resets))


@dataclass(frozen=True, slots=True)
class WindowScale:
    """A scale printed as a mean over a window. If it is a power of two (`constant`) nothing happened inside;
    otherwise it doubled `grew_after` of the window in, or halved `fell_after` of it in."""

    constant: bool
    low: float  # the power of two below (or equal)
    grew_after: float | None = None
    fell_after: float | None = None


def read_window_mean(value: float, relative_rounding: float = 5e-5) -> WindowScale | None:
    """What a window mean of the scale says (traiNNer prints %.4e: a relative rounding of 5e-5 at most).

    >>> read_window_mean(98304.0)
    WindowScale(constant=False, low=65536.0, grew_after=0.5, fell_after=0.5)
    >>> read_window_mean(6.5536e4).constant
    True
    """
    if not TINIEST <= value <= TOP:
        return None
    nearest = 2.0 ** round(math.log2(value))
    if abs(value / nearest - 1) <= relative_rounding:
        return WindowScale(True, nearest)
    low = 2.0 ** math.floor(math.log2(value))
    share = value / low - 1  # of the window at the upper level
    return WindowScale(False, low, grew_after=1 - share, fell_after=share)


@dataclass(frozen=True, slots=True)
class ScaleFall:
    """A stretch in which the scale only fell. `p` is the chance of so many halvings in so few updates at the
    steady rate of one in interval + 1 (AMP-05); `search` marks the calibration at the start (AMP-06)."""

    start: float
    end: float
    high: float
    low: float
    halvings: int
    p: float
    search: bool
    recovered: bool

    @property
    def collapse(self) -> bool:
        """AMP-04: overflow goes on at ever smaller scales. 1e-6: below it chance is no explanation even in a
        record of a million updates. A scale under 1 is called wrong by torch's own documentation."""
        return (self.low < 1.0 and not self.recovered) or (not self.search and self.p < 1e-6 and not self.recovered)


def scale_falls(scaler: Scaler, at: Sequence[float] | Floats, values: Sequence[float] | Floats) -> list[ScaleFall]:
    """Every stretch of the logged scale without a doubling in which it fell, in order."""
    t, v = np.asarray(at, dtype=float), np.asarray(values, dtype=float)
    keep = np.isfinite(t) & (v >= TINIEST) & (v <= TOP)
    t, v = t[keep], v[keep]
    falls: list[ScaleFall] = []
    begun = 0
    for i in range(1, len(v) + 1):
        if i < len(v) and v[i] <= v[i - 1]:
            continue
        if i - begun > 1 and v[i - 1] < v[begun]:
            last = begun + int(np.argmax(v[begun:i] == v[i - 1]))  # first point at the low level
            held = begun + int(np.max(np.nonzero(v[begun:i] == v[begun])[0]))  # last point at the high one
            halvings = round(math.log2(v[begun] / v[i - 1]))
            rate = (t[last] - t[held]) / (scaler.interval + 1)
            falls.append(
                ScaleFall(
                    start=float(t[held]),
                    end=float(t[last]),
                    high=float(v[begun]),
                    low=float(v[i - 1]),
                    halvings=halvings,
                    p=_poisson_tail(halvings, rate),
                    search=begun == 0 and bool(t[last] <= max(scaler.interval, t[0])),
                    recovered=bool((v[last:] >= v[begun] / 4).any()),
                )
            )
        begun = i
    return falls


def _poisson_tail(k: int, rate: float) -> float:
    """P(N >= k) for a Poisson count."""
    if k <= 0:
        return 1.0
    term = below = math.exp(-rate)
    for i in range(1, k):
        term *= rate / i
        below += term
    # For small rates the complement loses all digits; the first term of the tail is then the answer.
    tail = 1.0 - below
    return tail if tail > 1e-10 else math.exp(-rate) * rate**k / math.factorial(min(k, 150))
