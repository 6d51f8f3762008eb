"""Which way a curve goes, from where to where and since when: held against the logged points."""

from __future__ import annotations

import numpy as np

from wheeltapper.reading.record import Floats
from wheeltapper.review.answer_curves import (
    LEAST,
    LEVEL,
    Fit,
    best_of,
    close_to,
    curves_of,
    fit_value,
    shown_at,
    strongest,
    within,
)
from wheeltapper.review.model import Answer, Change, Direction, Value
from wheeltapper.review.record import Record
from wheeltapper.run.model import Series

CLEAR = 0.02  # relative change that is one at all


def answer_change(claim: Change, record: Record) -> Answer:
    best = strongest([_fit_change(claim, series, record) for series in curves_of(claim.subject, record)])
    return Answer(claim, best.verdict, best.why, best.places)


def _fit_change(claim: Change, series: Series, record: Record) -> Fit:
    if int(series.finite.sum()) < 2:
        return Fit("undecided", f"{series.name} has too few values for a course")
    if claim.difference is not None:
        return _fit_difference(claim.difference, series)
    if claim.start is not None and claim.end is not None:
        return _fit_from_to(claim.start, claim.end, series, record)
    since = None if claim.since is None else record.on_clock(series, claim.since, claim.clock)
    if claim.direction is None:
        return Fit("undecided", "no direction is named")
    if claim.since is not None and since is None:
        return Fit("undecided", f"{series.name} counts {series.clock}s, and the record does not tell {claim.clock}s")
    direction = _absolute(claim.direction, series)
    if direction is None:
        return Fit("undecided", f"it is not known which way is better for {series.name}")
    return _fit_onset(direction, since, series, claim.begins) if since is not None else _fit_course(direction, series)


def _fit_difference(wanted: float, series: Series) -> Fit:
    good = np.flatnonzero(series.finite)
    index = best_of(series)
    changes = {abs(float(series.values[good[-1]] - series.values[k])) for k in (index, good[0])}
    told = f"{series.name} went from {shown_at(series, index)} to {shown_at(series, int(good[-1]))}"
    close = any(close_to(change, abs(wanted), max(LEAST * abs(wanted), 1e-9)) for change in changes)
    return Fit("supported" if close else "contradicted", told, (series.place(index), series.place(int(good[-1]))))


def _fit_from_to(start: Value, end: Value, series: Series, record: Record) -> Fit:
    first, second = fit_value(start, series, record), fit_value(end, series, record)
    for fit in (first, second):
        if fit.verdict != "supported":
            return fit
    starts, ends = _positions_of(start, series, record), _positions_of(end, series, record)
    if starts and ends and min(starts) > max(ends):
        return Fit("contradicted", f"the other way round: {second.why}, {first.why}", second.places)
    return Fit("supported", f"{first.why}; {second.why}", (*first.places, *second.places))


def _positions_of(claim: Value, series: Series, record: Record) -> list[float]:
    """Where a value may be meant to stand."""
    at = None if claim.at is None else record.on_clock(series, claim.at, claim.clock)
    if at is not None:
        return [at]
    return [
        float(series.at[i]) for i in np.flatnonzero(series.finite) if within(float(series.values[i]), claim, series)
    ]


def _absolute(direction: Direction, series: Series) -> Direction | None:
    if direction not in ("better", "worse"):
        return direction
    if series.better not in ("up", "down"):
        return None
    return series.better if direction == "better" else "down" if series.better == "up" else "up"


def _ends(values: Floats) -> tuple[float, float, float]:
    """The level at both ends, and the noise of a value."""
    k = max(1, round(LEVEL * len(values)))
    noise = float(np.median(np.abs(np.diff(values)))) if len(values) > 2 else 0.0
    return float(np.median(values[:k])), float(np.median(values[-k:])), noise


def _fit_course(direction: Direction, series: Series) -> Fit:
    values = series.values[series.finite]
    start, end, noise = _ends(values)
    change, size = end - start, max(abs(start), abs(end), 1e-12)
    told = f"{series.name} goes from {start:.5g} to {end:.5g}"
    places = (series.place(0), series.place(len(series) - 1))
    clear = abs(change) > max(CLEAR * size, 2 * noise)
    if direction == "flat":
        moved = abs(change) > max(0.25 * size, 6 * noise)
        return Fit("contradicted" if moved else "supported", told, places)
    right = (change > 0) == (direction == "up")
    if clear and right:
        return Fit("supported", told, places)
    if clear and _went(values, direction) < 0.5 * abs(change):
        return Fit("contradicted", f"{told}: the other way", places)
    return Fit("undecided", f"{told}, within its noise or not all one way", places)


def _went(values: Floats, direction: Direction) -> float:
    """How far a curve went in a direction at most, by the medians of its tenths."""
    levels = np.array([np.median(part) for part in np.array_split(values, min(10, len(values)))])
    signed = levels if direction == "up" else -levels
    return float((signed - np.minimum.accumulate(signed)).max())


def _fit_onset(direction: Direction, since: float, series: Series, begins: bool) -> Fit:
    """A course since a position: it must go that way from there; one that begins there was not under way long before."""
    after = series.finite & (series.at >= since)
    if int(after.sum()) < 2:
        return Fit("not-in-record", f"{series.name} ends at {series.clock} {series.at[-1]:,.10g}")
    values, at = series.values[after], series.at[after]
    start, end, noise = _ends(values)
    spread = float(np.ptp(series.values[series.finite])) or 1.0
    turn = int(values.argmin() if direction == "up" else values.argmax())
    told = f"{series.name} is {values[0]:.5g} at {series.clock} {at[0]:,.10g} and {end:.5g} at the end"
    place = (series.place(int(np.flatnonzero(after)[0])), series.place(int(np.flatnonzero(after)[turn])))
    wrong_way = (end - start) * (1 if direction == "up" else -1) < -max(2 * noise, 0.01 * spread)
    late = at[turn] - since > 0.1 * float(np.ptp(series.at)) and abs(values[turn] - start) > max(
        3 * noise, 0.05 * spread
    )
    if direction != "flat" and (wrong_way or late):
        word = "lowest" if direction == "up" else "highest"
        return Fit(
            "contradicted",
            f"{told}; from there on it is {word} at {series.clock} {at[turn]:,.10g} ({values[turn]:.5g})",
            place,
        )
    earlier = (
        _begun_before(direction, since, series, float(values[0]), max(3 * noise, 0.05 * spread)) if begins else None
    )
    if earlier is not None:
        return Fit(
            "contradicted",
            f"it was under way before: {series.name} is {shown_at(series, earlier)}, {values[0]:.5g} at {at[0]:,.10g}",
            (series.place(earlier),),
        )
    return Fit("supported", told, place)


def _begun_before(direction: Direction, since: float, series: Series, value: float, clear: float) -> int | None:
    """The turn, where it lies clearly before the position that is named."""
    before = np.flatnonzero(series.finite & (series.at < since))
    if direction == "flat" or len(before) < 2:
        return None
    turn = int(before[series.values[before].argmin() if direction == "up" else series.values[before].argmax()])
    gap = value - series.values[turn] if direction == "up" else series.values[turn] - value
    return turn if gap > clear and since - series.at[turn] > 0.1 * float(np.ptp(series.at)) else None
