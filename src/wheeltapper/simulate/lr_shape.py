"""What a logged learning rate did, read from the log alone: warm-up, decay, cuts, restarts, jumps.

Robust to printed rounding and to per-epoch staircases (SCH-17). It describes; it does not judge. A change is
`cuts` if the LR stood still on both sides (StepLR, a plateau rule), `restarts` if a finished decay goes back
up, and `jumps` if no schedule we know moves like that: a resume with another schedule, an edit, an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from wheeltapper.reading.record import Floats
from wheeltapper.simulate.lr_fit import Decay, Fit, fits, quantum

BEYOND_SENSE = 1e30  # no LR is this large, nor so small unless it is 0; keeps the arithmetic finite
SAME_PLACE = 1e-9  # epochs may be fractions, but not of a billionth
Kind = Literal["empty", "constant", "warming", "decay", "step", "restarts", "cyclic", "one_cycle", "irregular"]


@dataclass(frozen=True, slots=True)
class LrJump:
    """A sudden change between two neighbouring points of the log."""

    before_at: float
    at: float
    before: float
    after: float

    @property
    def ratio(self) -> float:
        return self.after / self.before if self.before > 0 else float("inf")


@dataclass(frozen=True, slots=True)
class LrShape:
    """The shape of a logged LR, in the clock it was logged by."""

    kind: Kind
    n: int
    first: float = 0.0
    last: float = 0.0
    peak: float = 0.0
    peak_at: float = 0.0
    warmup_end: float | None = None
    warmup_from: float | None = None
    still_warming: bool = False
    stable_until: float | None = None  # the LR stood still from the warm-up until here, then decayed
    decay: Decay | None = None  # of the (last) smooth decay; None also if no single curve passes
    decay_candidates: tuple[Decay, ...] = ()  # every curve the points allow
    ends_at: float | None = None  # where that decay reaches its end, perhaps beyond the log
    ends_with: float | None = None
    cuts: tuple[LrJump, ...] = ()
    restarts: tuple[LrJump, ...] = ()
    jumps: tuple[LrJump, ...] = ()
    rises_from: float | None = None  # a smooth decay turned up again here (cosine past its end, SCH-02)
    low_from: float | None = None  # under 1 % of the peak from here to the end of the log (SCH-14)
    zero_from: float | None = None
    staircase: bool = False  # smooth, but changed only once an epoch

    def __str__(self) -> str:
        if self.kind == "empty":
            return "no learning rate logged"
        parts = []
        if self.still_warming:
            parts.append(f"still warming up at the end ({self.last:g})")
        elif self.warmup_end is not None:
            parts.append(f"warm-up to {self.peak:g} at {self.warmup_end:g}")
        names = {"decay": self.decay or "smooth", "step": f"{len(self.cuts)} cuts", "one_cycle": "one cycle"}
        if self.kind != "warming":
            parts.append(f"{names.get(self.kind, self.kind)} {'' if self.kind == 'constant' else 'to'} {self.last:g}")
        parts += [f"jump × {jump.ratio:.3g} at {jump.at:g}" for jump in self.jumps]
        if self.rises_from is not None:
            parts.append(f"climbs again from {self.rises_from:g}")
        return ", ".join(" ".join(part.split()) for part in parts)


@dataclass(frozen=True, slots=True)
class _Leg:
    """A stretch of points first..last that goes one way."""

    first: int
    last: int
    way: int  # +1 up, -1 down, 0 level


def shape_of_lr(at: Sequence[float] | Floats, values: Sequence[float] | Floats) -> LrShape:
    """The shape of a logged LR; points that a later launch overwrote are left out."""
    t, v = _survivors(np.asarray(at, dtype=np.float64), np.asarray(values, dtype=np.float64))
    if len(v) == 0:
        return LrShape("empty", 0)
    rounding = quantum(v)
    top = int(np.argmax(v))
    base = {
        "n": len(v),
        "first": float(v[0]),
        "last": float(v[-1]),
        "peak": float(v[top]),
        "peak_at": float(t[top]),
    }
    if float(np.ptp(v)) <= max(2 * float(rounding.max()), 1e-6 * float(v[top])):
        return LrShape("constant", **base)  # type: ignore[arg-type]
    t, v, rounding, staircase = _without_stairs(t, v, rounding)
    return _shape(t, v, rounding, staircase, base)


def _survivors(t: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Points that can be an LR, in order of position; where the log went back, only what was written last."""
    keep = np.isfinite(t) & (v >= 0) & (v < BEYOND_SENSE)
    t, v = t[keep], np.where(v[keep] > 1 / BEYOND_SENSE, v[keep], 0.0)
    if len(t) > 1 and (np.diff(t) <= SAME_PLACE).any():
        later = np.minimum.accumulate(t[::-1])[::-1]
        alive = np.append(t[:-1] < later[1:] - SAME_PLACE, True)
        t, v = t[alive], v[alive]
    return t, v


def _without_stairs(t: Floats, v: Floats, rounding: Floats) -> tuple[Floats, Floats, Floats, bool]:
    """One point per stair where the LR is held for a few points and then moves a little (per-epoch steps).

    A level much longer than the usual stair is a real plateau and keeps both its ends.
    """
    edges = np.nonzero(np.abs(np.diff(v)) > 0)[0] + 1
    starts = np.append(0, edges)
    ends = np.append(edges - 1, len(v) - 1)
    if len(starts) < 8 or len(starts) == len(v):
        return t, v, rounding, False
    length = t[ends] - t[starts]
    usual = max(float(np.median(length)), float(np.median(np.diff(t))))
    long = length >= 4 * usual
    index = np.unique(np.concatenate([starts, ends[long]]))
    # A slow smooth curve seen through rounding has stairs of one printed unit (two halves); those are not held.
    held = np.median(np.abs(np.diff(v[starts]))) > 3 * float(np.median(rounding))
    return t[index], v[index], rounding[index], bool(held and np.median(ends - starts) >= 1)


def _abrupt(t: Floats, v: Floats, rounding: Floats) -> list[int]:
    """Indices i where the LR changes suddenly between points i and i + 1.

    Sudden: five times larger than the steps on both sides (by the clock and by the row, since a clock may be
    uneven), also on a log scale unless it goes against both neighbours, by more than 5 % and more than the
    rounding. Five: from one point to the next a cosine, a ramp or a polynomial in use steepens threefold at
    most (0, 1/4, 1).
    """
    change = np.diff(v)
    gap = np.diff(t)
    step = np.abs(change)
    tiny = max(float(v.max()) * 1e-9, 1e-300)
    log_step = np.abs(np.diff(np.log(np.maximum(v, tiny))))

    def stands_out(size: Floats, i: int, near: list[int], times: float = 5.0) -> bool:
        return all(size[i] > times * size[j] and size[i] / gap[i] > times * size[j] / gap[j] for j in near)

    found = []
    for i in range(len(change)):
        if abs(change[i]) <= max(0.05 * max(v[i], v[i + 1]), 4 * rounding[i]):
            continue
        near = [j for j in (i - 1, i + 1) if 0 <= j < len(change)]
        # Against both neighbours no smooth curve moves at all, so a smaller step is enough there.
        against = len(near) == 2 and all(change[j] * change[i] < 0 for j in near)
        if near and (against and stands_out(step, i, near, 1.5)):
            found.append(i)
        elif near and stands_out(step, i, near):
            opposite = all(np.sign(change[j]) != np.sign(change[i]) for j in near)
            if opposite or stands_out(log_step, i, near):
                found.append(i)
    return found


def _legs(v: Floats, rounding: Floats, first: int, last: int) -> list[_Leg]:
    """Up, down and level stretches of a smooth piece; moves within the rounding are level."""
    least = max(1e-4 * float(v[first : last + 1].max()), 4 * float(rounding[first : last + 1].max()))
    turns, way, low, high = [first], 0, first, first
    for i in range(first + 1, last + 1):
        if way >= 0 and v[i] >= v[high]:
            high = i
        if way <= 0 and v[i] <= v[low]:
            low = i
        if way >= 0 and v[high] - v[i] > least:
            if high > first:
                turns.append(high)
            way, low = -1, i
        elif way <= 0 and v[i] - v[low] > least:
            if low > first:
                turns.append(low)
            way, high = 1, i
    legs = []
    for a, b in pairwise([*turns, last]):
        if b > a:
            moved = v[b] - v[a]
            legs.append(_Leg(a, b, 0 if abs(moved) <= least else (1 if moved > 0 else -1)))
    return legs


def _shape(t: Floats, v: Floats, rounding: Floats, staircase: bool, base: dict[str, float | int]) -> LrShape:
    peak = float(base["peak"])
    breaks = _abrupt(t, v, rounding)
    warm, warm_index = _warmup(t, v, rounding, breaks)
    breaks = [i for i in breaks if i >= warm_index]
    bounds = [warm_index, *breaks, len(v) - 1]
    pieces = [(a if n == 0 else a + 1, b) for n, (a, b) in enumerate(pairwise(bounds))]
    cuts, restarts, jumps = _sort_breaks(t, v, breaks, pieces, rounding)
    legs = [leg for a, b in pieces if b > a for leg in _legs(v, rounding, a, b)]
    downs = [leg for leg in legs if leg.way < 0]
    still = warm is not None and warm_index == len(v) - 1
    fitted: list[Fit] = []
    stable: float | None = None
    if downs:
        # Cycles are alike, so the one with most points tells most; otherwise the last decay is what counts.
        leg = max(downs, key=lambda down: down.last - down.first) if restarts else downs[-1]
        fitted, stable = _fit_decay(t, v, rounding, leg, warm_index)
    best = fitted[0] if fitted else None
    low = v <= 0.01 * peak
    return LrShape(
        kind=_kind(int(base["n"]), v, warm_index, warm, still, legs, cuts, restarts, jumps, best, t, rounding),
        warmup_end=None if warm is None or still else float(t[warm_index]),
        warmup_from=warm,
        still_warming=still,
        stable_until=stable,
        decay=best.kind if best else None,
        decay_candidates=tuple(dict.fromkeys(fit.kind for fit in fitted)),
        ends_at=best.ends_at if best else None,
        ends_with=best.ends_with if best else None,
        cuts=tuple(cuts),
        restarts=tuple(restarts),
        jumps=tuple(jumps),
        rises_from=_rise(t, v, legs),
        low_from=_tail(t, low),
        zero_from=_tail(t, v <= 0.0),
        staircase=staircase,
        **base,  # type: ignore[arg-type]
    )


def _warmup(t: Floats, v: Floats, rounding: Floats, breaks: list[int]) -> tuple[float | None, int]:
    """The LR that a warm-up began with, and the index of the first point at its end (0: none).

    A climb from the first point on, smooth or by stairs of like size, to at least half of the peak. A single
    sudden rise counts if it comes in the first tenth of the log.
    """
    drops = np.nonzero(np.diff(v) < -2 * rounding[1:])[0]
    last = int(drops[0]) if len(drops) else len(v) - 1
    reached = int(np.nonzero(v[: last + 1] >= v[last] - 2 * rounding[last])[0][0])
    rises = np.diff(v[: reached + 1])
    rises = rises[rises > 2 * float(rounding[: reached + 1].max())]
    if reached == 0 or v[last] < 0.5 * v.max() or v[last] - v[0] < 0.01 * v[last]:
        return None, 0
    sudden = [i for i in breaks if i < reached]
    stairs = len(rises) >= 2 and float(rises.max()) <= 3 * float(np.median(rises))
    if sudden and not stairs and t[sudden[-1] + 1] - t[0] > 0.1 * (t[-1] - t[0]):
        return None, 0
    if last == len(v) - 1:
        # The end of a ramp may look level through rounding: it still warms if the ramp explains the level.
        slope = (v[reached] - v[0]) / (t[reached] - t[0])
        if (t[-1] - t[reached]) * slope <= 8 * rounding[-1]:
            return float(v[0]), len(v) - 1
    return float(v[0]), reached


def _moving(v: Floats, rounding: Floats, leg: _Leg) -> tuple[int, int]:
    """The part of a falling leg that moves: without the level it may begin with and the one it may end with."""
    part = v[leg.first : leg.last + 1]
    top = np.nonzero(part >= part[0] - 2 * rounding[leg.first])[0]
    bottom = np.nonzero(part <= part[-1] + 2 * rounding[leg.last])[0]
    return leg.first + int(top[-1]), leg.first + int(bottom[0])


def _fit_decay(t: Floats, v: Floats, rounding: Floats, leg: _Leg, warm_index: int) -> tuple[list[Fit], float | None]:
    """The curves that the last fall follows, and until where the LR stood still before it.

    A level start may be the flat top of a cosine seen through rounding, so the whole leg is tried first. The
    first or last point may lie off the curve, where a ramp or the decay ended between two points.
    """
    below = np.nonzero(v[warm_index : leg.first] < v[leg.first] - 2 * rounding[leg.first])[0]
    first = warm_index + int(below[-1]) + 1 if len(below) else warm_index
    first = first if v[first] <= v[leg.first] + 2 * rounding[first] else leg.first
    begun, ended = _moving(v, rounding, leg)
    level = t[begun] - t[first] >= 0.1 * (t[-1] - t[0])
    starts = dict.fromkeys([first, leg.first, begun, leg.first + 1, begun + 1, leg.first + 2])
    ends = [ended, ended - 1] if ended < leg.last else [ended]
    for start, end in ((start, end) for start in starts for end in ends):
        if end - start < 3:
            continue
        gap = t[start + 1] - t[start]
        origins = {float(o) for o in (t[start], t[start] - gap, t[first], t[warm_index], t[0], 0.0)}
        part = slice(start, end + 1)
        known = tuple(origin for origin in origins if origin <= t[start])
        found = fits(t[part], v[part], rounding[part], known)
        if found:
            return found, float(t[begun]) if level and start >= begun else None
    return [], float(t[begun]) if level else None


def _sort_breaks(
    t: Floats, v: Floats, breaks: list[int], pieces: list[tuple[int, int]], rounding: Floats
) -> tuple[list[LrJump], list[LrJump], list[LrJump]]:
    cuts: list[LrJump] = []
    restarts: list[LrJump] = []
    jumps: list[LrJump] = []

    def level(a: int, b: int) -> bool:
        near = v[a : b + 1]
        return bool(np.ptp(near) <= max(4 * float(rounding[a : b + 1].max()), 1e-3 * float(near.max())))

    for n, i in enumerate(breaks):
        jump = LrJump(float(t[i]), float(t[i + 1]), float(v[i]), float(v[i + 1]))
        (a, b), (c, d) = pieces[n], pieces[n + 1]
        if jump.after < jump.before:
            flat = level(max(a, b - 3), b) and level(c, min(d, c + 3))
            (cuts if flat else jumps).append(jump)
        elif b - a >= 2 and not level(a, b) and jump.after <= 1.02 * v.max() and _ran_out(t, v, rounding, a, b, jump):
            restarts.append(jump)
        else:
            jumps.append(jump)
    return cuts, restarts, jumps


def _ran_out(t: Floats, v: Floats, rounding: Floats, a: int, b: int, jump: LrJump) -> bool:
    """Whether the decay a..b was over when the LR rose: then it is a schedule's own restart.

    Its curve says so where it is known to end; else it counts as over below 15 % of its top, or below 30 % if
    the LR goes back to that top.
    """
    part = slice(a, b + 1)
    found = fits(t[part], v[part], rounding[part], (float(t[a]), float(2 * t[a] - t[a + 1]), 0.0))
    end = next((fit.ends_at for fit in found if fit.ends_at is not None), None)
    if end is not None:
        return end <= jump.at + 2 * float(np.diff(t[part]).max())
    top = float(v[part].max())
    return jump.before <= 0.15 * top or (jump.before <= 0.3 * top and jump.after >= 0.98 * top)


def _kind(
    points: int,
    v: Floats,
    warm_index: int,
    warm: float | None,
    still: bool,
    legs: list[_Leg],
    cuts: list[LrJump],
    restarts: list[LrJump],
    jumps: list[LrJump],
    best: Fit | None,
    t: Floats,
    rounding: Floats,
) -> Kind:
    ups = sum(leg.way > 0 for leg in legs)
    downs = [leg for leg in legs if leg.way < 0]
    if still:
        return "warming"
    # A change of course every few points is noise (timm's lr_noise), or a cycle too short to be seen.
    if len(legs) + len(cuts) + len(restarts) + len(jumps) > max(6, points / 4):
        return "irregular"
    if restarts:
        return "restarts"
    if ups >= 2 and len(downs) >= 2:
        return "cyclic"
    if not downs and not ups:
        return "step" if cuts and not jumps else "constant" if not cuts else "irregular"
    if warm is not None and best is not None and _half_cosine_rise(t, v, rounding, warm_index):
        return "one_cycle"
    return "decay" if downs and (best is not None or _falls(v, downs)) else "irregular"


def _falls(v: Floats, downs: list[_Leg]) -> bool:
    """A decay without a named curve: it never rises within its legs."""
    return all((np.diff(v[leg.first : leg.last + 1]) <= 0.01 * v.max()).all() for leg in downs)


def _half_cosine_rise(t: Floats, v: Floats, rounding: Floats, end: int) -> bool:
    """OneCycle's way up: half a cosine, flat at both ends, where a plain warm-up is a straight line."""
    if end < 4:
        return False
    x, y, allowed = t[: end + 1], v[: end + 1], rounding[: end + 1]
    found = fits(x, float(y.max()) - y + float(y.min()), allowed, (float(x[0]), 0.0, float(2 * x[0] - x[1])))
    if not found or found[0].kind != "cosine" or any(fit.kind == "linear" for fit in found):
        return False
    # The half wave must be complete at the summit, else the cosine is only a bend that happens to fit. The
    # summit is known to within a point, and to within its level stretch if rounding made one.
    top = np.nonzero(v >= v[end] - 2 * rounding[end])[0]
    slack = 1.5 * float(np.diff(x).max())
    wave_end = found[0].ends_at
    return wave_end is not None and t[top[0]] - slack <= wave_end <= t[top[-1]] + slack


def _rise(t: Floats, v: Floats, legs: list[_Leg]) -> float | None:
    """Where a smooth decay turns up for the first time, by at least 5 % of the peak."""
    for down, up in pairwise(legs):
        if down.way < 0 < up.way and up.first == down.last and v[up.last] - v[up.first] >= 0.05 * v.max():
            return float(t[up.first])
    return None


def _tail(t: Floats, mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float | None:
    """The position from which the mask holds to the end."""
    if not mask[-1]:
        return None
    broken = np.nonzero(~mask)[0]
    return float(t[broken[-1] + 1]) if len(broken) else float(t[0])
