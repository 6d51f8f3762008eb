"""Curves with what a plan promises drawn over them: the old run on the page of a fix, the new one on a follow-up's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wheeltapper.diagnosis.model import Diagnosis
from wheeltapper.remedy.plan import Band as Promise
from wheeltapper.remedy.plan import Plan
from wheeltapper.report.curves import Band, Chart, charts_of
from wheeltapper.report.text import clean

MOST = 4
LABEL = "promised at the named steps"


def charts_with(diagnosis: Diagnosis, plan: Plan | None) -> tuple[Chart, ...]:
    """The most telling charts of a run; those of promised metrics carry the promise, and come first."""
    charts = [_promised(chart, plan.expected if plan is not None else ()) for chart in charts_of(diagnosis)]
    charts.sort(key=lambda chart: chart.band is None)
    return tuple(charts[:MOST])


def _promised(chart: Chart, promises: tuple[Promise, ...]) -> Chart:
    names = {line.name for line in chart.lines}
    mine = [p for p in promises if clean(p.metric, 60) in names and p.clock == chart.clock]
    if not mine or len({p.metric for p in mine}) > 1:
        return chart
    mine.sort(key=lambda p: p.at)
    bottom, top = _open_edges(chart, mine)
    low = np.array([bottom if p.low is None else p.low for p in mine])
    high = np.array([top if p.high is None else p.high for p in mine])
    x = np.array([p.at for p in mine], dtype=np.float64)
    end = max(chart.end, float(x[-1]))
    if len(x) == 1:  # a promise at one step is drawn as a narrow bar
        half = 0.01 * max(end - chart.start, 1e-12)
        x, low, high = np.array([x[0] - half, x[0] + half]), np.repeat(low, 2), np.repeat(high, 2)
    if chart.log and low.min() <= 0:
        return chart
    return replace(chart, band=Band(x, low, np.maximum(low, high), LABEL), end=end)


def _open_edges(chart: Chart, promises: Sequence[Promise]) -> tuple[float, float]:
    """Where a side without a limit ends in the picture: clear of every limit, so that it reads as open."""
    known = [v for p in promises for v in (p.low, p.high) if v is not None]
    low, high = min(chart.low, *known), max(chart.high, *known)
    if chart.log:
        return low / 2, high * 2
    room = 0.25 * (high - low)
    return low - room, high + room
