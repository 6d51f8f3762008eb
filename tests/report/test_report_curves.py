"""Thinning loses no spike and no NaN; charts carry their marks; the SVG is well formed and inert."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report_sample import EVIL, sample_diagnosis, sample_run, series
from wheeltapper.finding import Finding
from wheeltapper.report.curves import charts_of, thin
from wheeltapper.report.spark import spark
from wheeltapper.report.svg import draw, nice_ticks
from wheeltapper.run.model import Run


def test_a_spike_of_one_step_in_a_million_is_drawn() -> None:
    x = np.arange(1_000_000.0)
    y = np.ones(1_000_000)
    y[654_321] = 99.0
    line = thin(x, y, 0, x[-1])
    drawn = np.concatenate([piece[1] for piece in line.pieces])
    assert drawn.max() == 99.0
    assert len(drawn) < 2000


def test_one_nan_in_a_million_breaks_the_line() -> None:
    y = np.ones(1_000_000)
    y[500_000] = np.nan
    line = thin(np.arange(1_000_000.0), y, 0, 999_999)
    assert line.broken == ((500_000.0, 500_000.0),)
    assert len(line.pieces) == 2


@given(st.lists(st.one_of(st.floats(), st.just(float("nan"))), min_size=1, max_size=300), st.integers(1, 50))
@settings(max_examples=60, deadline=None)
def test_thinning_keeps_the_extremes_and_every_break(values: list[float], columns: int) -> None:
    y = np.array(values)
    line = thin(np.arange(len(y), dtype=float), y, 0, max(1, len(y) - 1), columns)
    finite = y[np.isfinite(y)]
    drawn = np.concatenate([p[1] for p in line.pieces]) if line.pieces else np.array([])
    assert bool(line.broken) == (finite.size < y.size)
    if finite.size:
        assert (drawn.min(), drawn.max()) == (finite.min(), finite.max())
    assert len(spark(y, 20)) == min(20, len(y))


def test_charts_of_the_sample() -> None:
    charts = charts_of(sample_diagnosis())
    by_title = {chart.title: chart for chart in charts}
    top1 = by_title["val/top1 (%)"]
    assert charts[0] is top1, "the curve with an ill sign and the best checkpoint comes first"
    assert {m.kind for m in top1.marks} == {"ill", "restart", "stage", "best"}
    assert top1.overlay is not None
    assert not top1.log
    best = next(m for m in top1.marks if m.kind == "best")
    assert (best.at, best.y) == (9000, pytest.approx(30.2))
    loss = by_title["loss"]
    assert [line.role for line in loss.lines] == ["dead", "train", "val"]
    assert loss.lines[1].broken == ((10250.0, 10750.0),)


def test_an_onset_on_another_clock_moves_along_the_rows() -> None:
    run = sample_run()
    finding = Finding("f", "s", "ill", "is", series="train/loss", clock="epoch", onset=5.0, end=6.0)
    chart = next(c for c in charts_of(sample_diagnosis(run=run, findings=(finding,))) if c.title == "loss")
    mark = next(m for m in chart.marks if m.kind == "ill")
    assert (mark.at, mark.end) == (5000, 6000)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 1.0, 1.0],
        [0.0, 0.0],
        [1e-300, 1e300],
        [-1.7e308, 1.7e308, 0.0],
        [float("nan")] * 4,
        [float("inf"), 2.0, float("-inf"), 3.0],
        [1e-7, 2e-7],
    ],
)
def test_any_values_make_a_well_formed_picture(values: list[float]) -> None:
    run = Run("r", ".", (), {EVIL: series(EVIL, values, raw=EVIL, unit="<&>")})
    for chart in charts_of(sample_diagnosis(run=run, findings=(), best=None)):
        picture = draw(chart, "a")
        ElementTree.fromstring(picture)
        assert "nan," not in picture
        assert "inf," not in picture
        assert "<script" not in picture


def test_marks_do_not_print_over_each_other() -> None:
    chart = charts_of(sample_diagnosis())[0]
    crowded = dataclasses.replace(
        chart, marks=tuple(dataclasses.replace(chart.marks[0], at=9000.0 + i) for i in range(9))
    )
    root = ElementTree.fromstring(draw(crowded))
    labels = [(e.get("x"), e.get("y")) for e in root.iter("text") if "label" in (e.get("class") or "")]
    assert len(labels) == len(set(labels)) == 3


def test_ticks_are_few_and_inside() -> None:
    for low, high in ((0, 1), (0.2999, 0.3001), (-5, 1e6), (1e-9, 3e-9)):
        ticks = nice_ticks(low, high, 5)
        assert 2 <= len(ticks) <= 11
        assert all(low <= t <= high for t in ticks)
