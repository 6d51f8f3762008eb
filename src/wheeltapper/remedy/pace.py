"""How long a step takes, from the run's own wall clock; and what so many steps will cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wheeltapper.reading.record import ClockName
from wheeltapper.run.model import Run

FEWEST = 3  # intervals: fewer make no pace
PAUSE = 20.0  # times the median interval: longer is a pause (queue, restart), not work


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds for one unit of `clock`, evaluation and saving included."""

    seconds: float
    clock: ClockName
    source: str

    def hours(self, length: float) -> float:
        return self.seconds * length / 3600


def pace_of(run: Run, clock: str | None) -> Pace | None:
    """The pace on `clock`; None where the record holds no wall clock for it."""
    best: tuple[int, Pace] | None = None
    for series in run.series.values():
        seconds = series.clocks.get("second")
        track = series.on(clock) if clock else None  # type: ignore[arg-type]
        if seconds is None or track is None:
            continue
        good = np.isfinite(seconds) & np.isfinite(track)
        took, done = np.diff(seconds[good]), np.diff(track[good])
        kept = (took > 0) & (done > 0)
        if int(kept.sum()) < FEWEST:
            continue
        took, done = took[kept], done[kept]
        work = took / done <= PAUSE * float(np.median(took / done))
        each = float(took[work].sum() / done[work].sum())
        count = int(work.sum())
        if math.isfinite(each) and (best is None or count > best[0]):
            source = f"{count:,} intervals of {series.name}"
            best = (count, Pace(each, clock, source))  # type: ignore[arg-type]
    return None if best is None else best[1]


def hours_words(hours: float | None) -> str:
    """
    >>> hours_words(None), hours_words(0.004), hours_words(0.5), hours_words(30.2), hours_words(150)
    ('time unknown', 'less than a minute', '30 min', '30.2 h', '150 h (6.2 days)')
    """
    if hours is None:
        return "time unknown"
    if hours < 1 / 60:
        return "less than a minute"
    if hours < 1:
        return f"{60 * hours:.0f} min"
    return f"{hours:.3g} h" if hours < 72 else f"{hours:.3g} h ({hours / 24:.1f} days)"
