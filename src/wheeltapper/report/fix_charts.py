"""Curves with what a plan promises drawn over them: the old run on the page of a fix, the new one on a follow-up's."""

from __future__ import annotations

from dataclasses import replace

from wheeltapper.judge.model import Diagnosis
from wheeltapper.remedy.plan import Band, Plan
from wheeltapper.report.curves import Chart, Gate, charts_of
from wheeltapper.report.text import clean, num, position

MOST = 4


def charts_with(diagnosis: Diagnosis, plan: Plan | None) -> tuple[Chart, ...]:
    """The most telling charts of a run; those of promised metrics carry the promise, and come first."""
    charts = [_promised(chart, plan.expected if plan is not None else ()) for chart in charts_of(diagnosis)]
    charts.sort(key=lambda chart: not chart.gates)
    return tuple(charts[:MOST])


def _promised(chart: Chart, promises: tuple[Band, ...]) -> Chart:
    """A promise holds at its own position and nowhere between: each is a gate of its own, in the colour of its line."""
    lines = {line.name: line for line in chart.lines if line.role != "dead"}
    gates = tuple(
        Gate(p.at, p.low, p.high, line.role, line.nth, f"{line.name} {band_words(p)} at {position(p.at, p.clock)}")
        for p in promises
        if p.clock == chart.clock and (line := lines.get(clean(p.metric, 60))) is not None
    )
    if not gates:
        return chart
    last = max(gate.at for gate in gates)
    room = 0.02 * (last - chart.start)  # a gate at the very edge would be cut
    return replace(chart, band=None, gates=gates, end=max(chart.end, last + room))


def band_words(band: Band) -> str:
    if band.low is not None and band.high is not None:
        return f"{num(band.low)} to {num(band.high)}"
    return f"≥ {num(band.low)}" if band.low is not None else f"≤ {num(band.high)}"
