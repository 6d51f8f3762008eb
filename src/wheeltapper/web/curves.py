"""Curves as a browser draws them: plain lists, thinned to what a screen shows, thinned again for the part that is zoomed."""

from __future__ import annotations

from typing import Any

import numpy as np

from wheeltapper.judge.compare import Comparison, CurvePair
from wheeltapper.judge.model import Diagnosis
from wheeltapper.reading.record import ClockName, Floats
from wheeltapper.report.curves import Chart, Line, charts_of, thin
from wheeltapper.report.spark import wants_log
from wheeltapper.report.text import clean
from wheeltapper.report.view import curve_line
from wheeltapper.run.model import Series
from wheeltapper.simulate.plan import Plan

MOST_CHARTS = 12
TICKS: dict[str, str] = {"steps": "step", "micro_steps": "micro_step", "epochs": "epoch", "samples": "sample"}


def charts_json(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """Every chart of a run: lines, marks, the band of a forecast, the planned rate."""
    return [_chart(chart, diagnosis, None) for chart in charts_of(diagnosis, MOST_CHARTS)]


def zoomed(diagnosis: Diagnosis, number: int, start: float, end: float) -> list[dict[str, Any]] | None:
    """The lines of one chart between two positions, with all the points that fit on a screen."""
    charts = charts_of(diagnosis, MOST_CHARTS)
    if not 0 <= number < len(charts) or not start < end:
        return None
    lines: list[dict[str, Any]] = _chart(charts[number], diagnosis, (start, end))["lines"]
    return lines


def _chart(chart: Chart, diagnosis: Diagnosis, part: tuple[float, float] | None) -> dict[str, Any]:
    series = {clean(s.name, 60): s for s in diagnosis.run.series.values()}
    lines = [
        _line(line if part is None or line.role == "dead" else _cut(line, series.get(line.name), chart, part))
        for line in chart.lines
    ]
    if chart.overlay is not None:
        lines.append({**_line(chart.overlay), "own_scale": True})
    planned = _planned(diagnosis, chart)
    if planned is not None:
        lines.append(planned)
    told = [curve_line(series[line.name]) for line in chart.lines if line.name in series and line.role != "dead"]
    return {
        "title": chart.title,
        "clock": chart.clock,
        "log": chart.log,
        "lines": lines,
        "marks": [{"at": m.at, "end": m.end, "kind": m.kind, "label": m.label, "y": m.y} for m in chart.marks],
        "band": None
        if chart.band is None
        else {"x": chart.band.x.tolist(), "low": chart.band.low.tolist(), "high": chart.band.high.tolist()},
        "words": "; ".join(f"{line.name}: {line.numbers}" for line in told),
    }


def _line(line: Line) -> dict[str, Any]:
    """One list of positions and one of values; null where the line is broken by a value that is not finite."""
    x: list[float] = []
    y: list[float | None] = []
    for k, (xs, ys) in enumerate(line.pieces):
        if k and x:
            x.append((x[-1] + float(xs[0])) / 2)
            y.append(None)
        x += xs.tolist()
        y += ys.tolist()
    return {"name": line.name, "role": line.role, "nth": line.nth, "x": x, "y": y, "broken": list(line.broken)}


def _cut(line: Line, series: Series | None, chart: Chart, part: tuple[float, float]) -> Line:
    track = None if series is None else series.on(_clock(chart.clock))
    if series is None or track is None:
        return line
    inside = (track >= part[0]) & (track <= part[1])
    thinned = thin(track[inside], series.values[inside], *part)
    return Line(line.name, line.role, thinned.pieces, thinned.broken, line.nth)


def _clock(name: str) -> ClockName:
    return name  # type: ignore[return-value]  # a Chart keeps the name of a clock as text


def _planned(diagnosis: Diagnosis, chart: Chart) -> dict[str, Any] | None:
    """The rate that the settings plan, beside the one that was logged."""
    rates = {clean(s.name, 60) for s in diagnosis.run.find("lr")}
    if diagnosis.study is None or not any(line.name in rates for line in chart.lines):
        return None
    plan: Plan | None = diagnosis.study.maybe("lr_plan")
    scale = None if plan is None else _ticks(plan, chart.clock, diagnosis.run.fact("steps_per_epoch"))
    if plan is None or scale is None:
        return None
    y: Floats = plan.lr()
    x = scale * np.arange(len(y), dtype=np.float64)
    thinned = thin(x, y, 0.0, float(x[-1]))
    return {**_line(Line("planned rate", "plan", thinned.pieces, thinned.broken)), "dashed": True}


def _ticks(plan: Plan, clock: str, per_epoch: object) -> float | None:
    """How far a clock goes in one tick of a plan; None where that is not known."""
    unit = TICKS.get(plan.unit)
    if unit == clock:
        return 1.0
    if not isinstance(per_epoch, int | float) or not per_epoch > 0:
        return None
    return {("step", "epoch"): 1.0 / per_epoch, ("epoch", "step"): float(per_epoch)}.get((unit or "", clock))


def pairs_json(comparison: Comparison, names: tuple[str, str]) -> list[dict[str, Any]]:
    """Every curve that two runs share, one above the other."""
    return [_pair(pair, names) for pair in comparison.curves[:MOST_CHARTS]]


def _pair(pair: CurvePair, names: tuple[str, str]) -> dict[str, Any]:
    lines = []
    for role, series, name in (("a", pair.a, names[0]), ("b", pair.b, names[1])):
        track = series.on(pair.clock)
        if track is None or not len(track):
            continue
        known = track[np.isfinite(track)]
        if known.size:
            thinned = thin(track, series.values, float(known.min()), float(known.max()))
            lines.append({**_line(thinned), "name": name, "role": role})
    marks = [] if pair.parts_at is None else [{"at": pair.parts_at, "end": None, "kind": "watch", "label": "they part", "y": None}]
    return {
        "title": clean(pair.name, 60),
        "clock": pair.clock,
        "log": pair.a.better != "up" and wants_log(np.concatenate([s.values[s.finite] for s in (pair.a, pair.b)])),
        "lines": lines,
        "marks": marks,
        "band": None,
        "words": pair.text,
    }
