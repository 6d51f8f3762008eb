"""A logged learning rate against the planned one, under every honest way of logging it (SCH-15).

Logs differ in what they count (updates or epochs, from 0 or 1), and in whether they show the LR before or after
the scheduler's step. Those are conventions, not faults. What no convention explains is then named: a constant
factor, another pace (the world size or the accumulation forgotten, SCH-06/07), a shift, or the first position
where plan and log part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from wheeltapper.reading.record import ClockName, Floats
from wheeltapper.simulate.lr_fit import quantum
from wheeltapper.simulate.lr_shape import BEYOND_SENSE, shape_of_lr
from wheeltapper.simulate.plan import Plan

Verdict = Literal["matches", "scaled", "paced", "shifted", "differs", "cannot tell"]
AS_PLANNED = "as planned"  # the plain reading of the plan, worth no word
FEWEST = 3  # points; two points fit many curves
# TensorBoard keeps float32: 6e-8 of the value, and averages over a window a little more.
RELATIVE = 2e-6


@dataclass(frozen=True, slots=True)
class LrMatch:
    """How the log relates to the plan. `paced`: the LR at position s is the planned one at time_factor·s.

    `scaled` may also mean that another parameter group was logged (SCH-13), and `shifted` that updates were
    skipped by the loss scaler (SCH-08): both are facts about the log, not yet faults.
    """

    verdict: Verdict
    why: str
    convention: str = ""
    compared: int = 0
    ratio: float = 1.0  # logged / planned
    time_factor: float = 1.0
    factor_names: tuple[str, ...] = ()
    offset: int = 0  # ticks the log is ahead of the plan
    first_mismatch: float | None = None  # position in the log's clock
    expected: float | None = None
    got: float | None = None
    rise_at: float | None = None  # the log climbs again here, the plan does not
    jump_at: float | None = None  # a sudden change that the plan does not have


@dataclass(frozen=True, slots=True)
class _Reading:
    """One convention: which tick of the plan stands behind each logged point."""

    name: str
    ticks: Floats


def compare_lr(
    plan: Plan,
    series_at: Sequence[float] | Floats,
    series_values: Sequence[float] | Floats,
    clock: ClockName,
    decimals: int | None = None,
    *,
    steps_per_epoch: int | None = None,
    accumulation: int = 1,
    factors: Mapping[str, float] | None = None,
    group: int = 0,
) -> LrMatch:
    """Match a logged LR with the plan. `decimals`: how many the log prints, if known; `factors`: numbers whose
    miscount would change the pace, such as {"world size": 8, "accumulation": 4}."""
    at = np.asarray(series_at, dtype=np.float64)
    values = np.asarray(series_values, dtype=np.float64)
    keep = np.isfinite(at) & (np.abs(values) < BEYOND_SENSE)
    at, values = at[keep], values[keep]
    readings = _readings(plan, at, clock, steps_per_epoch, accumulation)
    if not readings:
        return LrMatch("cannot tell", f"a log by {clock} cannot be laid on a plan by {plan.unit}")
    half = quantum(values) if decimals is None else np.full(len(values), 0.5 * 10.0**-decimals)
    allowed = 1.5 * half + RELATIVE * np.abs(values)
    lr = plan.lr(group)
    planned = [(reading, _at(lr, plan, reading.ticks)) for reading in readings]
    planned = [(reading, known) for reading, known in planned if np.isfinite(known).sum() >= FEWEST]
    if not planned:
        return LrMatch("cannot tell", "fewer than three logged points lie where the plan is known")
    for reading, expected in planned:
        if _agrees(expected, values, allowed):
            n = int(np.isfinite(expected).sum())
            how = "" if reading.name == AS_PLANNED else f" ({reading.name})"
            return LrMatch("matches", f"{n} logged values equal the plan{how}", reading.name, n)
    mean = _epoch_means(plan, lr, at, clock, steps_per_epoch)
    if mean is not None and _agrees(mean, values, np.maximum(allowed, 1e-3 * np.abs(values))):
        return LrMatch("matches", "the logged values are the plan's epoch means", "mean over the epoch", len(values))
    found = _scaled(planned, values, allowed) or _paced(plan, lr, readings, values, allowed, factors or {})
    found = found or _shifted(plan, lr, readings[0], values, allowed)
    found = found or _lagging(plan, lr, readings[0], values, allowed) or _differs(planned, at, values, allowed)
    return _with_shape(found, plan, readings[0], at, values, lr)


def _readings(plan: Plan, at: Floats, clock: ClockName, per_epoch: int | None, accumulation: int) -> list[_Reading]:
    """Every convention, the commonest first."""
    by_tick = {"steps": "step", "micro_steps": "micro_step", "epochs": "epoch"}.get(plan.unit)
    if clock == by_tick or (clock == "step" and plan.unit == "micro_steps" and accumulation == 1):
        unit = "epoch" if clock == "epoch" else "step"
        return [
            _Reading(AS_PLANNED, at),
            _Reading(f"the LR the {unit} used, counted from 1", at - 1),
            _Reading("one tick ahead", at + 1),
        ]
    if clock == "epoch" and per_epoch:
        ticks = per_epoch * (accumulation if plan.unit == "micro_steps" else 1)
        return [
            _Reading(f"{name}{step_name}", (at + shift) * ticks + step)
            for shift, name in (
                (0, "start of the epoch, or end of an epoch counted from 1"),
                (1, "end of the epoch"),
                (-1, "start of an epoch counted from 1"),
            )
            for step, step_name in ((0, ""), (-1, ", its last update"), (1, ", one tick ahead"))
        ]
    if plan.unit == "epochs" and clock in ("step", "micro_step") and per_epoch:
        ticks = per_epoch * (accumulation if clock == "micro_step" else 1)
        return [
            _Reading(AS_PLANNED, np.floor(at / ticks)),
            _Reading("counted from 1", np.floor((at - 1) / ticks)),
        ]
    if clock == "micro_step" and plan.unit == "steps":
        return [
            _Reading(AS_PLANNED, np.floor(at / accumulation)),
            _Reading("counted from 1", np.floor((at - 1) / accumulation)),
        ]
    if clock == "step" and plan.unit == "micro_steps":
        return [_Reading(AS_PLANNED, at * accumulation), _Reading("its last batch", at * accumulation - 1)]
    return []


def _at(lr: Floats, plan: Plan, ticks: Floats) -> Floats:
    """The plan at these ticks; NaN outside it and where it is loose."""
    index = np.floor(ticks + 1e-6)
    inside = (index >= 0) & (index < len(lr)) & (index >= plan.loose_until)
    out = np.full(len(ticks), np.nan)
    out[inside] = lr[index[inside].astype(int)]
    return out


def _agrees(expected: Floats, values: Floats, allowed: Floats) -> bool:
    known = np.isfinite(expected)
    return int(known.sum()) >= FEWEST and bool((np.abs(expected - values)[known] <= allowed[known]).all())


def _epoch_means(plan: Plan, lr: Floats, at: Floats, clock: ClockName, per_epoch: int | None) -> Floats | None:
    """MAE and DeiT log the mean LR of the epoch."""
    if clock != "epoch" or plan.unit != "steps" or not per_epoch or plan.loose_until:
        return None
    sums = np.concatenate([[0.0], np.cumsum(lr)])
    first = np.round(at * per_epoch).astype(int)
    inside = (first >= 0) & (first + per_epoch < len(sums))
    out = np.full(len(at), np.nan)
    out[inside] = (sums[first[inside] + per_epoch] - sums[first[inside]]) / per_epoch
    return out


def _scaled(planned: list[tuple[_Reading, Floats]], values: Floats, allowed: Floats) -> LrMatch | None:
    """One constant factor between log and plan."""
    for reading, expected in planned:
        usable = np.isfinite(expected) & (expected > 0) & (values > 0)
        if int(usable.sum()) < FEWEST:
            continue
        largest = int(np.argmax(np.where(usable, expected, 0.0)))
        ratio = float(values[largest] / expected[largest])
        if abs(ratio - 1) > 1e-3 and _agrees(expected * ratio, values, allowed + RELATIVE * values + allowed[largest]):
            n = int(usable.sum())
            return LrMatch("scaled", f"the log is {ratio:.4g} times the plan", reading.name, n, ratio=ratio)
    return None


def _candidate_factors(factors: Mapping[str, float]) -> dict[float, tuple[str, ...]]:
    """Paces to try: the named numbers, their products and inverses, then small whole numbers."""
    named: dict[float, tuple[str, ...]] = {}
    items = [(name, value) for name, value in factors.items() if value and value > 0 and value != 1]
    for name, value in items:
        for factor in (value, 1 / value):
            named[factor] = (*named.get(factor, ()), name)
    for k in (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 100, 128, 256):
        for factor in (float(k), 1.0 / k):
            named.setdefault(factor, ())
    return named


def _paced(
    plan: Plan, lr: Floats, readings: list[_Reading], values: Floats, allowed: Floats, factors: Mapping[str, float]
) -> LrMatch | None:
    """The LR at s is the planned one at k·s. The compared stretch must move, or any pace would do."""
    tick = float(np.nanmax(np.abs(np.diff(lr))))
    for factor, names in _candidate_factors(factors).items():
        # Rounding to whole ticks moves the plan by half a tick; a scheduler stepped seldom holds its last value.
        slack = allowed + 0.5 * tick * max(1.0, factor)
        for reading in readings[:3]:
            spots = (np.round(reading.ticks * factor), reading.ticks * factor)
            for expected in (_at(lr, plan, ticks) for ticks in spots[: 2 if factor < 1 else 1]):
                known = expected[np.isfinite(expected)]
                if len(known) < 8 or np.ptp(known) < 0.2 * known.max() or not _agrees(expected, values, slack):
                    continue
                if _agrees(_at(lr, plan, reading.ticks), values, slack):
                    continue
                why = (
                    f"the LR runs {factor:g} times as fast as planned"
                    if factor > 1
                    else (f"the LR runs at 1/{1 / factor:g} of the planned pace")
                )
                return LrMatch("paced", why, reading.name, len(known), time_factor=factor, factor_names=names)
    return None


def _shifted(plan: Plan, lr: Floats, reading: _Reading, values: Floats, allowed: Floats) -> LrMatch | None:
    """A constant number of ticks ahead or behind (skipped updates, a resume that lost its count)."""
    few = np.unique(np.linspace(0, len(values) - 1, min(len(values), 60)).round().astype(int))
    most = min(len(lr) // 4, 2000)
    for offset in (sign * size for size in range(2, most + 1) for sign in (-1, 1)):
        sample = _at(lr, plan, reading.ticks[few] + offset)
        known = sample[np.isfinite(sample)]
        if len(known) < max(8, len(few) // 2) or np.ptp(known) < 0.05 * known.max():
            continue
        if _agrees(sample, values[few], allowed[few]):
            expected = _at(lr, plan, reading.ticks + offset)
            if _agrees(expected, values, allowed):
                text = f"the log is {abs(offset)} ticks {'ahead of' if offset > 0 else 'behind'} the plan"
                n = int(np.isfinite(expected).sum())
                return LrMatch("shifted", text, reading.name, n, offset=offset)
    return None


# A scheduler that waits for skipped updates falls behind: a score at the start, where the loss scale is searched
# for, then one or two in a thousand (AMP-05, AMP-06).
FIRST_SKIPS, SKIP_RATE = 20, 0.002


def _lagging(plan: Plan, lr: Floats, reading: _Reading, values: Floats, allowed: Floats) -> LrMatch | None:
    """A lag that grows slowly, as skipped updates make it; SCH-08 calls it real and negligible."""
    index = np.unique(np.linspace(0, len(values) - 1, min(len(values), 1000)).round().astype(int))
    lag = 0
    compared = 0
    for i in index:
        tick = int(reading.ticks[i])
        most = int(min(FIRST_SKIPS, 0.02 * plan.n) + SKIP_RATE * tick) + 1
        low, high = max(int(plan.loose_until), tick - most, 0), tick + 1
        window = lr[low : high + 1]
        if tick < 0 or len(window) == 0 or not np.isfinite(window).all():
            continue
        compared += 1
        if not window.min() - allowed[i] <= values[i] <= window.max() + allowed[i]:
            return None
        lag = max(lag, tick - (low + int(np.argmin(np.abs(window - values[i])))))
    if compared < 8 or lag < 2:
        return None
    text = f"the log falls up to {lag} ticks behind the plan, as skipped updates make it"
    return LrMatch("shifted", text, reading.name, compared, offset=-lag)


def _differs(planned: list[tuple[_Reading, Floats]], at: Floats, values: Floats, allowed: Floats) -> LrMatch:
    """The convention that holds longest, and where it stops."""

    def prefix(expected: Floats) -> int:
        bad = np.isfinite(expected) & (np.abs(expected - values) > allowed)
        return int(np.argmax(bad)) if bad.any() else len(values)

    reading, expected = max(planned, key=lambda pair: prefix(pair[1]))
    index = prefix(expected)
    n = int(np.isfinite(expected).sum())
    got, want = float(values[index]), float(expected[index])
    return LrMatch(
        "differs",
        f"planned {want:.6g}, logged {got:.6g} at {at[index]:g}",
        reading.name,
        n,
        ratio=got / want if want else math.inf,
        first_mismatch=float(at[index]),
        expected=want,
        got=got,
    )


def _with_shape(match: LrMatch, plan: Plan, reading: _Reading, at: Floats, values: Floats, lr: Floats) -> LrMatch:
    """Rises and jumps of the log that the plan, logged the same way, does not have."""
    if match.verdict != "differs":
        return match
    logged = shape_of_lr(at, values)
    expected = _at(lr, plan, reading.ticks)
    plain = shape_of_lr(at, np.where(np.isfinite(expected), expected, np.nan))
    span = float(at[-1] - at[0]) if len(at) > 1 else 1.0

    def new(position: float, others: Callable[[], list[float]]) -> bool:
        return all(abs(position - other) > 0.02 * span for other in others())

    jumps = [j.at for j in (*logged.jumps, *logged.restarts)]
    own = [j.at for j in (*plain.jumps, *plain.restarts, *plain.cuts)]
    jump = next((j for j in jumps if new(j, lambda: own)), None)
    rise = logged.rises_from
    if rise is not None and plain.rises_from is not None and abs(rise - plain.rises_from) <= 0.02 * span:
        rise = None
    return replace(match, rise_at=rise, jump_at=jump)
