"""What remedies and expected patterns look for: series, settings and messages by how people spell them; how far a curve fell."""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.run.model import Event, Run, Series
from wheeltapper.settings.tree import Leaf


def series_like(run: Run, pattern: str, least: int = 3) -> list[Series]:
    """Series whose logged name matches: for quantities that have no name in the table of names."""
    seek = re.compile(pattern, re.IGNORECASE)
    return [s for s in run.series.values() if seek.search(s.raw) and int(s.finite.sum()) >= least]


def settings_like(run: Run, pattern: str) -> list[Leaf]:
    """Settings whose dotted name matches, in every configuration of the run."""
    seek = re.compile(pattern, re.IGNORECASE)
    return [leaf for tree in run.configs for leaf in tree.leaves if seek.search(leaf.dotted)]


def messages_like(run: Run, pattern: str) -> list[Event]:
    seek = re.compile(pattern, re.IGNORECASE)
    return [event for event in run.events if seek.search(event.text)]


def ends(series: Series) -> tuple[float, float] | None:
    """The level of the first and of the last tenth; None where there are too few values for two levels."""
    x = series.values[series.finite]
    if len(x) < 8:
        return None
    k = max(1, len(x) // 10)
    return float(np.median(x[:k])), float(np.median(x[-k:]))


def fell(series: Series | None) -> float | None:
    """The share of its first level that a loss lost; negative where it rose."""
    levels = ends(series) if series is not None else None
    if levels is None or levels[0] == 0:
        return None
    return (levels[0] - levels[1]) / abs(levels[0])


def as_share(series: Series) -> float:
    """What a score must be divided by to be a share between 0 and 1."""
    return 100.0 if series.unit == "%" else 1.0
