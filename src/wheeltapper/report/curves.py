"""Which curves a report draws, and what is marked on them. Plain data: svg.py and the page only place it.

Thinning keeps the lowest and the highest point of every pixel column, so a spike of one step survives at any
size, and a column that holds NaN or inf breaks the line and is marked (NaN is data, design/001-nan.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from wheeltapper.finding import Finding
from wheeltapper.judge.compare import MACHINE
from wheeltapper.judge.model import Diagnosis
from wheeltapper.prognosis.forecast import Forecast
from wheeltapper.reading.record import ClockName
from wheeltapper.report.spark import wants_log
from wheeltapper.report.text import clean
from wheeltapper.run.model import Run, Series

Array = np.ndarray[Any, np.dtype[np.float64]]
Role = Literal["train", "val", "test", "other", "dead", "lr", "plan"]
MarkKind = Literal["ill", "watch", "note", "restart", "best", "stage"]

COLUMNS = 400  # about one per pixel of a chart on a wide screen
MOST_CHARTS = 8
MOST_LINES = 4
# A file with thousands of launches would paint the chart over: the longest dead branches, and marks only
# where they can still be told apart.
MOST_DEAD = 6
MOST_MARKS = 16


@dataclass(frozen=True, slots=True)
class Line:
    """One curve, thinned: pieces between gaps, and the stretches where it is not finite."""

    name: str
    role: Role
    pieces: tuple[tuple[Array, Array], ...]
    broken: tuple[tuple[float, float], ...] = ()
    nth: int = 0  # of several lines of one role in a chart, drawn fainter


@dataclass(frozen=True, slots=True)
class Mark:
    at: float
    kind: MarkKind
    label: str
    end: float | None = None  # shade from `at` to here
    y: float | None = None  # a point on the curve, for the best checkpoint


@dataclass(frozen=True, slots=True)
class Band:
    """Where the curve is expected to go."""

    x: Array
    low: Array
    high: Array
    label: str


@dataclass(frozen=True, slots=True)
class Gate:
    """What one line of the chart must pass at a position; a side without a limit is open."""

    at: float
    low: float | None
    high: float | None
    role: Role
    nth: int
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    clock: str
    better: str
    lines: tuple[Line, ...]
    start: float
    end: float
    low: float
    high: float
    log: bool
    overlay: Line | None = None
    marks: tuple[Mark, ...] = ()
    band: Band | None = None
    gates: tuple[Gate, ...] = ()


def thin(x: Array, y: Array, start: float, end: float, columns: int = COLUMNS) -> Line:
    """Lowest and highest point per column, in their order; a column with a non-finite value ends a piece.

    >>> line = thin(np.arange(6.0), np.array([1.0, 2, np.nan, 4, 5, 9]), 0, 5)
    >>> [piece[1].tolist() for piece in line.pieces], line.broken
    ([[1.0, 2.0], [4.0, 5.0, 9.0]], ((2.0, 2.0),))
    """
    known = np.isfinite(x)
    x, y = x[known], y[known]
    if not len(x):
        return Line("", "other", ())
    width = end - start
    share = (x - start) / width if width > 0 else np.zeros(len(x))
    column = np.clip(share * columns, 0, columns - 1).astype(int)
    finite = np.isfinite(y)
    pieces: list[tuple[Array, Array]] = []
    open_x: list[float] = []
    open_y: list[float] = []
    for part in np.split(np.arange(len(x)), np.flatnonzero(np.diff(column)) + 1):
        good = part[finite[part]]
        if good.size:
            lowest, highest = good[y[good].argmin()], good[y[good].argmax()]
            chosen = sorted({int(i) for i in (good[0], lowest, highest, good[-1])})
            open_x += x[chosen].tolist()
            open_y += y[chosen].tolist()
        if good.size < part.size and open_x:
            pieces.append((np.array(open_x), np.array(open_y)))
            open_x, open_y = [], []
    if open_x:
        pieces.append((np.array(open_x), np.array(open_y)))
    return Line("", "other", tuple(pieces), _stretches(x, ~finite, column))


def _stretches(x: Array, bad: np.ndarray[Any, Any], column: np.ndarray[Any, Any]) -> tuple[tuple[float, float], ...]:
    """First and last position of each run of bad points; runs that touch on the picture are one."""
    spots = np.flatnonzero(bad)
    if not spots.size:
        return ()
    apart = (np.diff(spots) > 1) & (np.diff(column[spots]) > 1)
    firsts = spots[np.concatenate([[True], apart])]
    lasts = spots[np.concatenate([apart, [True]])]
    return tuple((float(x[i]), float(x[j])) for i, j in zip(firsts, lasts, strict=True))


def line_of(series: Series, x: Array, start: float, end: float, role: Role | None = None) -> Line:
    thinned = thin(x, series.values, start, end)
    known: Role = role or series.split or "other"
    return Line(clean(series.name, 60), known, thinned.pieces, thinned.broken)


def charts_of(diagnosis: Diagnosis, most: int = MOST_CHARTS) -> tuple[Chart, ...]:
    """The charts worth a reader's time, the most telling first."""
    run = diagnosis.run
    by_series: dict[str, list[Finding]] = {}
    for finding in diagnosis.findings:
        if finding.series:
            by_series.setdefault(finding.series, []).append(finding)
    # Curves of the machine are drawn only where a sign was seen in them.
    groups = [
        g for g in _grouped(run, by_series) if g[0].quantity not in MACHINE or any(s.name in by_series for s in g)
    ]
    groups.sort(key=lambda group: _rank(group, by_series, diagnosis))
    charts = []
    for group in groups[:most]:
        chart = _chart(diagnosis, group, by_series)
        if chart is not None:
            charts.append(chart)
    return tuple(charts)


def _grouped(run: Run, by_series: Mapping[str, list[Finding]]) -> list[list[Series]]:
    """Series of one meaning share a chart when they can stand on one clock."""
    groups: dict[tuple[str, str | None, int], list[Series]] = {}
    ordered = sorted(run.series.values(), key=lambda s: (s.name not in by_series, -len(s)))
    for series in ordered:
        if len(series) < 2:
            continue
        number = 0
        while True:
            key = (series.quantity or f"={series.name}", series.part, number)
            group = groups.setdefault(key, [])
            fits = not group or (len(group) < MOST_LINES and series.on(group[0].clock) is not None)
            if fits and all(other.unit == series.unit for other in group):
                group.append(series)
                break
            number += 1
    return list(groups.values())


_ORDER = ("loss", "accuracy", "lr", "grad_norm", "loss_scale")


def _rank(group: list[Series], by_series: Mapping[str, list[Finding]], diagnosis: Diagnosis) -> tuple[int | bool, ...]:
    severity = {"ill": 0, "watch": 1, "note": 2}
    worst = min((severity[f.severity] for s in group for f in by_series.get(s.name, ())), default=3)
    is_best = diagnosis.best is not None and any(s.name == diagnosis.best.metric for s in group)
    quantity = group[0].quantity or ""
    place = _ORDER.index(quantity) if quantity in _ORDER else len(_ORDER)
    held_out = any(s.split in ("val", "test") for s in group)
    part = bool(group[0].part)
    return (min(worst, 2), not is_best, part, place != 0, not held_out, place, -len(group[0]))


def _chart(diagnosis: Diagnosis, group: list[Series], by_series: Mapping[str, list[Finding]]) -> Chart | None:
    run, lead = diagnosis.run, group[0]
    clock = lead.clock
    tracks = [(series, track) for series in group if (track := series.on(clock)) is not None]
    branches = sorted((branch for s in group for branch in run.dead.get(s.name, ())), key=len, reverse=True)
    dead = [(branch, track) for branch in branches[:MOST_DEAD] if (track := branch.on(clock)) is not None]
    xs = np.concatenate([track[np.isfinite(track)] for _, track in tracks + dead])
    ys = np.concatenate([series.values[series.finite] for series, _ in tracks + dead])
    if not xs.size:
        return None
    band = _band(diagnosis.prognosis, group, clock)
    start, end = float(xs.min()), float(xs.max())
    if band is not None:
        end = max(end, float(band.x[-1]))
    lines = [line_of(series, track, start, end, "dead") for series, track in dead]
    counts: Counter[Role] = Counter()
    for series, track in tracks:
        line = line_of(series, track, start, end)
        lines.append(replace(line, nth=counts[line.role]))
        counts[line.role] += 1
    # Scores that are better when higher (accuracy, dB) are read on a linear scale by everyone.
    log = lead.better != "up" and wants_log(ys)
    low, high = (float(ys.min()), float(ys.max())) if ys.size else (0.0, 1.0)
    # A share between 0 and 1 needs no unit beside its name.
    unit = f" ({clean(lead.unit, 12)})" if lead.unit not in (None, "fraction", "share") else ""
    title = clean(lead.name if len(group) == 1 else _shared_name(group), 60) + unit
    marks = [*_finding_marks(group, clock, by_series), *_run_marks(run, clock, start, end)]
    marks += _best_mark(diagnosis, group, clock)
    return Chart(
        title=title,
        clock=clock,
        better=lead.better,
        lines=tuple(lines),
        start=start,
        end=end,
        low=low,
        high=high,
        log=log,
        overlay=_lr_overlay(run, group, clock, start, end),
        marks=tuple(marks),
        band=band,
    )


def _shared_name(group: list[Series]) -> str:
    name = group[0].quantity or group[0].name
    return f"{name} {group[0].part}" if group[0].part else name


def _finding_marks(group: list[Series], clock: ClockName, by_series: Mapping[str, list[Finding]]) -> Iterable[Mark]:
    for series in group:
        for finding in by_series.get(series.name, ()):
            if finding.onset is None or finding.severity == "note":
                continue
            at = series.moved(finding.onset, cast(ClockName, finding.clock or clock), clock)
            if at is None:
                continue
            end = (
                None
                if finding.end is None
                else series.moved(finding.end, cast(ClockName, finding.clock or clock), clock)
            )
            last = series.on(clock)
            if finding.end is None and last is not None:
                end = float(last[-1])
            yield Mark(at, finding.severity, clean(finding.id, 40), end)


def _run_marks(run: Run, clock: ClockName, start: float, end: float) -> Iterable[Mark]:
    restarts = [s for s in run.segments if s.kind != "first" and s.clock == clock and start < s.start < end]
    if len(restarts) <= MOST_MARKS:
        yield from (Mark(segment.start, "restart", segment.kind) for segment in restarts)
    stages = [e for e in run.events if e.kind == "stage" and e.clock == clock]
    if len(stages) <= MOST_MARKS:
        for event in stages:
            if event.at is not None and start < event.at < end:
                yield Mark(event.at, "stage", clean(event.text, 30))


def _best_mark(diagnosis: Diagnosis, group: list[Series], clock: ClockName) -> Iterable[Mark]:
    best = diagnosis.best
    series = next((s for s in group if best is not None and s.name == best.metric), None)
    if best is None or best.nothing or series is None or not series.finite.any():
        return
    track = series.on(clock)
    if track is None:
        return
    with np.errstate(invalid="ignore"):
        index = int(np.nanargmin(np.where(series.finite, np.abs(series.values - best.value), np.inf)))
    yield Mark(float(track[index]), "best", "best", y=float(series.values[index]))


def _band(prognosis: object | None, group: list[Series], clock: ClockName) -> Band | None:
    if not isinstance(prognosis, Forecast) or prognosis.clock != clock or len(prognosis.at) < 2:
        return None
    if all(series.name != prognosis.series for series in group):
        return None
    x, low, high = (np.asarray(column, dtype=np.float64) for column in (prognosis.at, prognosis.low, prognosis.high))
    return Band(x, low, high, "expected, 90 % band")


def _lr_overlay(run: Run, group: list[Series], clock: ClockName, start: float, end: float) -> Line | None:
    if group[0].quantity == "lr":
        return None
    for series in run.find("lr"):
        track = series.on(clock)
        if track is not None and len(series) > 1:
            inside = (track >= start) & (track <= end)
            if inside.sum() > 1:
                cut = series.where(inside)
                return line_of(cut, track[inside], start, end, "lr")
    return None
