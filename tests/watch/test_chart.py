"""Curves in text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheeltapper.watch.chart import DARK, LABEL, Band, Plot, draw

anything = st.floats(allow_nan=True, allow_infinity=True, width=32)


def lines(plot: Plot, width: int = 60, height: int = 12) -> list[str]:
    return [line.plain for line in draw(plot, width, height)]


def rising(n: int = 50) -> Plot:
    return Plot(np.arange(n, dtype=float), np.arange(n, dtype=float))


def test_a_rising_line_rises() -> None:
    told = lines(rising())
    body = [line[LABEL:] for line in told[:-1]]
    first = [min(i for i, c in enumerate(line) if c != " ") for line in body if line.strip()]
    assert first == sorted(first, reverse=True)
    assert told[0].strip().startswith("49")
    assert told[-1].split() == ["0", "49"]


def test_one_spike_among_thousands_is_drawn() -> None:
    values = np.ones(5000) + 0.1 * np.sin(np.arange(5000))
    values[2500] = 1.4
    body = [line[LABEL:] for line in lines(Plot(np.arange(5000.0), values))[:-1]]
    assert body[0].strip() != ""
    assert len(body[0].strip()) == 1


def test_what_is_not_finite_is_marked_where_it_is() -> None:
    values = np.where(np.arange(50) >= 40, np.nan, 1.0)
    told = lines(Plot(np.arange(50.0), values))[-2][LABEL:]
    assert told.find("×") == pytest.approx(0.82 * len(told), abs=2)


def test_a_band_is_shaded_ahead_and_the_axis_reaches_its_end() -> None:
    ahead = np.linspace(50.0, 100.0, 20)
    plot = Plot(np.arange(50.0), np.ones(50), Band(ahead, ahead * 0 + 0.5, ahead * 0 + 1.0, ahead * 0 + 1.5))
    drawn = draw(plot, 60, 12)
    assert drawn[-1].plain.split()[-1] == "100"
    shaded = [span.start - LABEL for line in drawn[:-1] for span in line.spans if DARK.band in str(span.style)]
    assert shaded
    assert min(shaded) >= 0.45 * (60 - LABEL)


def test_a_target_and_an_onset() -> None:
    plot = Plot(np.arange(50.0), np.linspace(0, 1, 50), target=0.5, onsets=(25.0,))
    told = lines(plot)
    assert any("╌" in line for line in told)
    assert sum("┊" in line for line in told) > 6


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(anything, anything), max_size=60),
    st.integers(0, 90), st.integers(0, 30), st.booleans(), st.one_of(st.none(), anything),
)  # fmt: skip
def test_any_curve_fits_its_place(points: list[tuple[float, float]], width: int, height: int, log: bool, target: float | None) -> None:
    at = np.array([p[0] for p in points], dtype=float)
    plot = Plot(at, np.array([p[1] for p in points], dtype=float), target=target, log=log, onsets=(0.0,))
    told = lines(plot, width, height)
    assert all(len(line) <= max(width, 0) for line in told)
    assert len(told) <= max(height, 1)
