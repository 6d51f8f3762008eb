"""Claims about curves, held against the logged points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from wheeltapper.finding import Place
from wheeltapper.reading.record import Floats
from wheeltapper.review.model import Answer, Extreme, Prediction, Value, Verdict
from wheeltapper.review.record import Record
from wheeltapper.run.model import Series

LEAST = 0.005  # relative: how exactly a value is usually quoted
NEAR = 2  # points beside a position that may be meant: logs and people count from 0 or 1
LEVEL = 0.1  # part of a curve whose median is its level at an end
SHARES = {"accuracy"}
INIT_SCALE = 65536.0  # of torch's GradScaler


@dataclass(frozen=True, slots=True)
class Fit:
    """One reading of a claim against one curve."""

    verdict: Verdict
    why: str
    places: tuple[Place, ...] = ()


def answer_value(claim: Value, record: Record) -> Answer:
    fits = [fit_value(claim, series, record) for series in curves_of(claim.subject, record)]
    best = strongest(fits)
    if best.verdict != "supported" and claim.setting is not None:
        set_to = record.value_of(claim.setting)
        if set_to is not None and _is_number(set_to[0]) and within(float(set_to[0]), claim):
            return Answer(claim, "supported", f"it is set to {set_to[0]:g}", (set_to[1],))
    if best.verdict == "not-in-record" and claim.at is not None:
        planned = _planned_end(claim, record, record.reachable(claim.clock or "step"))
        if planned is not None:
            return planned
    return Answer(claim, best.verdict, best.why, best.places)


def answer_extreme(claim: Extreme, record: Record) -> Answer:
    best = strongest([_fit_place(claim, series, record) for series in curves_of(claim.subject, record)])
    return Answer(claim, best.verdict, best.why, best.places)


def answer_prediction(claim: Prediction, record: Record) -> Answer:
    """Promised values: beyond the end of the plan they never come; where the run has been, they can be read."""
    reach = record.reachable(claim.clock) if claim.clock is not None else None
    if claim.at is not None and reach is not None and claim.at > reach[0] * 1.001:
        return Answer(claim, "contradicted", f"it is never reached: {reach[1]}")
    planned = _planned_end(claim, record, reach) or _planned_scale(claim, record)
    if planned is not None:
        return planned
    return Answer(claim, "undecided", "a promise about what is not yet logged")


def _planned_end(claim: Prediction | Value, record: Record, reach: tuple[float, str] | None) -> Answer | None:
    """The learning rate at a position, from the plan."""
    if claim.at is None or not any(name == "lr" or name.startswith("lr") for name in claim.subject):
        return None
    plan = record.audit.plan
    last = record.row("learning rates")
    at_end = reach is not None and claim.at >= reach[0] * 0.999
    if at_end and last is not None:
        end = float(last.split(" (")[0].split(",")[-1])
    elif at_end and plan is not None:
        end = float(plan.lr()[-1])
    else:
        return None
    close = close_to(end, claim.low, max(0.05 * abs(claim.low), LEAST * abs(end)))
    return Answer(
        claim,
        "supported" if close else "contradicted",
        f"the plan ends at {end:.3g}, not at {claim.low:.3g}" if not close else f"the plan ends at {end:.3g}",
    )


def _planned_scale(claim: Prediction, record: Record) -> Answer | None:
    """A loss scale: a scaler that is on starts at its first scale and doubles; one that is off shows 1."""
    if not any(series.quantity == "loss_scale" for series in curves_of(claim.subject, record)):
        return None
    set_to = record.knobs.value("amp.init_scale")
    first = float(set_to) if _is_number(set_to) else INIT_SCALE
    if claim.low == claim.high or claim.low <= first <= claim.high or claim.low <= 1.0 <= claim.high:
        return None
    return Answer(
        claim, "contradicted",
        f"a scaler starts at {first:,.0f} and doubles while nothing overflows; with bf16 it is off and shows 1: "
        f"{claim.low:,.0f} to {claim.high:,.0f} is neither",
    )  # fmt: skip


# -- one curve -------------------------------------------------------------------------------------------


def curves_of(names: Sequence[str], record: Record) -> list[Series]:
    return [series for name in names if (series := record.run.series_named(name)) is not None and len(series)]


def strongest(fits: Sequence[Fit]) -> Fit:
    """Any curve that may be meant and fits is enough; a contradiction needs all of them."""
    if not fits:
        return Fit("not-in-record", "no such curve is logged")
    for verdict in ("supported", "undecided"):
        found = next((fit for fit in fits if fit.verdict == verdict), None)
        if found is not None:
            return found
    return fits[0]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def close_to(value: float, want: float, slack: float) -> bool:
    return abs(value - want) <= slack * (1 + 1e-9)


def _scales(claim: Value, series: Series | None = None) -> tuple[float, ...]:
    """By what a number may have been multiplied: 40.9 % is 0.409, and 0.829 may be logged as 82.9."""
    if claim.percent:
        return (1.0, 0.01)
    if series is not None and series.quantity in SHARES:
        return (1.0, 100.0)
    if series is not None and series.quantity == "memory":
        return (1.0, 1e3, 1024.0, 1e6, 1e9)
    if series is not None and series.quantity == "duration":
        return (1.0, 1e-3, 1e3)
    return (1.0,)


def within(value: float, claim: Value, series: Series | None = None) -> bool:
    for scale in _scales(claim, series):
        low, high = sorted((claim.low * scale, claim.high * scale))
        slack = max(claim.slack * scale * 1.2, LEAST * max(abs(low), abs(high)))
        if low - slack <= value <= high + slack:
            return True
    return False


def _shown(claim: Value) -> str:
    unit = " %" if claim.percent else ""
    return f"{claim.low:.5g}{unit}" if claim.low == claim.high else f"{claim.low:.5g} to {claim.high:.5g}{unit}"


def shown_at(series: Series, index: int) -> str:
    return f"{series.values[index]:.5g} at {series.clock} {series.at[index]:,.10g}"


def _extreme(series: Series, highest: bool) -> int:
    bad = -np.inf if highest else np.inf
    values = np.where(series.finite, series.values, bad)
    return int(values.argmax() if highest else values.argmin())


def best_of(series: Series) -> int:
    return _extreme(series, series.better == "up")


def _nearest(series: Series, at: float) -> int:
    return int(np.abs(series.at - at).argmin())


def fit_value(claim: Value, series: Series, record: Record) -> Fit:
    if not series.finite.any():
        return Fit("contradicted", f"{series.name} is never finite", (series.place(0),))
    at = None if claim.at is None else record.on_clock(series, claim.at, claim.clock)
    if claim.at is not None and at is None:
        return Fit("undecided", f"{series.name} counts {series.clock}s, and the record does not tell {claim.clock}s")
    if at is not None and _outside(series, at):
        return Fit(
            "not-in-record",
            f"{series.name} is logged from {series.clock} {series.at[0]:,.10g} to {series.at[-1]:,.10g}",
        )
    rule = _RULES.get(claim.moment, _somewhere)
    fit = rule(claim, series, at)
    if fit.verdict == "contradicted" and claim.loose:
        return Fit("undecided", f"{fit.why}; it is not plain that the number is a value of this curve", fit.places)
    if fit.verdict == "contradicted" and claim.several and _marked(claim, series):
        return Fit("undecided", f"{fit.why}; the number is one of this curve, at another moment", fit.places)
    return fit


def _marked(claim: Value, series: Series) -> bool:
    """Whether the number is the first, the last, the lowest or the highest of the curve: then the words were read wrongly
    rather than the number."""
    good = np.flatnonzero(series.finite)
    ends = (int(good[0]), int(good[-1]), _extreme(series, True), _extreme(series, False))
    return any(within(float(series.values[index]), claim, series) for index in ends)


def _outside(series: Series, at: float) -> bool:
    gap = float(np.median(np.diff(series.at))) if len(series) > 1 else 0.0
    first, last = float(series.at.min()), float(series.at.max())
    return at > last + 2 * abs(gap) + 1 or at < first - 2 * abs(gap) - 1


def _around(series: Series, at: float) -> Floats:
    near = _nearest(series, at)
    return series.values[max(0, near - NEAR) : near + NEAR + 1]


def _fit_at(claim: Value, series: Series, at: float | None) -> Fit:
    if at is None:
        return _somewhere(claim, series, at)
    index = _nearest(series, at)
    told = f"{series.name} is {shown_at(series, index)}"
    if any(within(float(value), claim, series) for value in _around(series, at) if np.isfinite(value)):
        return Fit("supported", told, (series.place(index),))
    return Fit("contradicted", f"{told}, not {_shown(claim)}", (series.place(index),))


def _fit_end(last: bool) -> Callable[[Value, Series, float | None], Fit]:
    def fit(claim: Value, series: Series, at: float | None) -> Fit:
        if at is not None:
            return _fit_at(claim, series, at)
        finite = np.flatnonzero(series.finite)
        index = int(finite[-1] if last else finite[0])
        part = series.values[series.finite]
        k = max(1, round(LEVEL * len(part)))
        level = float(np.median(part[-k:] if last else part[:k]))
        ends = [float(v) for v in (part[-3:] if last else part[:3])]
        told = f"{series.name} {'ends' if last else 'starts'} at {shown_at(series, index)}"
        if any(within(value, claim, series) for value in (*ends, level)):
            return Fit("supported", told, (series.place(index),))
        return Fit("contradicted", f"{told}, not at {_shown(claim)}", (series.place(index),))

    return fit


def _fit_extreme(highest: bool | None) -> Callable[[Value, Series, float | None], Fit]:
    def fit(claim: Value, series: Series, at: float | None) -> Fit:
        index = best_of(series) if highest is None else _extreme(series, highest)
        word = "best" if highest is None else "highest" if highest else "lowest"
        told = f"{series.name} is {word} with {shown_at(series, index)}"
        right = within(float(series.values[index]), claim, series)
        if not right and at is not None:
            right = any(within(float(v), claim, series) for v in _around(series, at)) and _as_good(series, at, index)
        elif not right and at is None and highest is not False:
            right = _levels_reach(series, claim)
        if right and at is not None and not _as_good(series, at, index):
            return Fit(
                "contradicted",
                f"{told}; at {series.clock} {at:,.10g} it is {series.values[_nearest(series, at)]:.5g}",
                (series.place(index),),
            )
        places = (series.place(index),)
        return (
            Fit("supported", told, places)
            if right
            else Fit("contradicted", f"{told}, not with {_shown(claim)}", places)
        )

    return fit


def _levels_reach(series: Series, claim: Value) -> bool:
    """ "Reaches 98 %" is also said of the level that a noisy curve reaches."""
    part = series.values[series.finite]
    k = max(1, round(LEVEL * len(part)))
    return within(float(np.median(part[-k:])), claim, series) or within(float(part[-1]), claim, series)


def _as_good(series: Series, at: float, index: int) -> bool:
    """Whether the curve is about as good near `at` as at its extreme."""
    around = _around(series, at)
    around = around[np.isfinite(around)]
    if not len(around):
        return False
    spread = float(np.ptp(series.values[series.finite])) or 1.0
    return bool(np.abs(around - series.values[index]).min() <= 0.02 * spread)


def _fit_place(claim: Extreme, series: Series, record: Record) -> Fit:
    """Where a curve is at its extreme; a place that is as good within a fiftieth of its range counts."""
    if not series.finite.any():
        return Fit("contradicted", f"{series.name} is never finite", (series.place(0),))
    at = record.on_clock(series, claim.at, claim.clock)
    if at is None:
        return Fit("undecided", f"{series.name} counts {series.clock}s, and the record does not tell {claim.clock}s")
    index = best_of(series) if claim.moment == "best" else _extreme(series, claim.moment == "highest")
    told = f"{series.name} is {claim.moment} with {shown_at(series, index)}"
    close = abs(float(series.at[index]) - at) <= 0.03 * float(np.ptp(series.at)) or (
        not _outside(series, at) and _as_good(series, at, index)
    )
    return Fit("supported" if close else "contradicted", told, (series.place(index),))


def _fit_bound(above: bool) -> Callable[[Value, Series, float | None], Fit]:
    def fit(claim: Value, series: Series, at: float | None) -> Fit:  # noqa: ARG001 (one signature for all)
        index = _extreme(series, above)
        value = float(series.values[index])
        told = f"{series.name} is {'at most' if above else 'at least'} {shown_at(series, index)}"
        held = any(
            (
                value <= claim.high * scale + claim.slack * scale * 1.2
                if above
                else value >= claim.low * scale - claim.slack * scale * 1.2
            )
            for scale in _scales(claim, series)
        )
        return Fit("supported" if held else "contradicted", told, (series.place(index),))

    return fit


def _somewhere(claim: Value, series: Series, at: float | None) -> Fit:
    if at is not None:
        return _fit_at(claim, series, at)
    good = np.flatnonzero(series.finite)
    for index in (int(good[-1]), best_of(series), int(good[0]), _extreme(series, True), _extreme(series, False)):
        if within(float(series.values[index]), claim, series):
            return Fit("supported", f"{series.name} is {shown_at(series, index)}", (series.place(index),))
    hits = [int(i) for i in good if within(float(series.values[i]), claim, series)]
    if hits:
        return Fit("supported", f"{series.name} is {shown_at(series, hits[0])}", (series.place(hits[0]),))
    low, high = _extreme(series, False), _extreme(series, True)
    told = f"{series.name} lies between {shown_at(series, low)} and {shown_at(series, high)}"
    lowest, highest = float(series.values[low]), float(series.values[high])
    inside = any(lowest <= claim.low * scale <= highest for scale in _scales(claim, series))
    return Fit(
        "undecided" if inside else "contradicted",
        told if inside else f"{told}: never {_shown(claim)}",
        (series.place(low),),
    )


def _fit_reached(claim: Value, series: Series, at: float | None) -> Fit:
    """At its best, or its highest: "reaches" is said of both, and of a level that a noisy curve passes."""
    fits = [_fit_extreme(None)(claim, series, at), _fit_extreme(True)(claim, series, at)]
    found = next((fit for fit in fits if fit.verdict == "supported"), None)
    if found is not None or at is not None:
        return found or fits[0]
    low, high = float(series.values[_extreme(series, False)]), float(series.values[_extreme(series, True)])
    passed = any(low <= claim.low * scale <= high for scale in _scales(claim, series))
    return Fit("undecided", f"{fits[0].why}; it passes there", fits[0].places) if passed else fits[0]


def _fit_level(claim: Value, series: Series, at: float | None) -> Fit:
    """Where a curve stays: the middle of its second half, with its spread there."""
    values = series.values[series.finite]
    half = values[len(values) // 2 :] if at is None else series.values[series.finite & (series.at >= at)]
    if not len(half):
        return _fit_at(claim, series, at)
    low, level, high = (float(q) for q in np.quantile(half, (0.1, 0.5, 0.9)))
    told = f"{series.name} stays about {level:.5g} ({low:.5g} to {high:.5g}) in its second half"
    wide = structs.replace(claim, slack=max(claim.slack, (high - low) / 2, 0.05 * abs(level)))
    fits = within(level, wide, series) or within(float(half[-1]), claim, series)
    return Fit("supported" if fits else "contradicted", told, (series.place(len(series) - 1),))


_RULES: dict[str, Callable[[Value, Series, float | None], Fit]] = {
    "at": _fit_at,
    "last": _fit_end(True),
    "first": _fit_end(False),
    "highest": _fit_extreme(True),
    "lowest": _fit_extreme(False),
    "best": _fit_extreme(None),
    "reached": _fit_reached,
    "level": _fit_level,
    "never-above": _fit_bound(True),
    "never-below": _fit_bound(False),
}
