"""Is the next run better or worse than the old one, beyond what noise does? The plan remembers where the old one ended.

A remedy that helps and does not go far enough is a part of the answer; only one that changed nothing is refuted. So
scores are compared at the position where the old run ended, each with its noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wheeltapper.reading.record import Floats
from wheeltapper.remedy.plan import Level, Rates
from wheeltapper.run.model import Run, Series
from wheeltapper.study import Study
from wheeltapper.study.statistics import noise_of

SPREAD = 3.0  # sigmas: a level that differs by less may be the same one
# A part of the level: logs print three digits or so, and a score that is constant has no noise to go by.
LEAST = 0.005
FEWEST = 5  # points: a level and its noise need that many
Than = Literal["better", "worse", "same", "too early"]


@dataclass(frozen=True, slots=True)
class Compared:
    """What is better than it was, and what is worse, in words; the score that matters most comes first."""

    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    first: Than | None = None  # of the score that matters most

    @property
    def helped(self) -> bool:
        return bool(self.better) and (not self.worse or self.first == "better")


def rounded(value: float) -> float:
    return float(f"{value:.4g}")


def judged(study: Study) -> list[Series]:
    """The main score, the validation loss and the training loss: what a reader watches, what matters most first."""
    found = (study.maybe("main_metric"), study.maybe("val_loss"), study.maybe("train_loss"))
    kept = {s.name: s for s in found if s is not None and s.better in ("up", "down") and s.name in study.run.series}
    return list(kept.values())


def level_of(series: Series) -> Level | None:
    """Where a series ended: the median of its last tenth, and its noise."""
    good = series.finite & np.isfinite(series.at)
    if int(good.sum()) < FEWEST or series.better not in ("up", "down"):
        return None
    values = series.values[good]
    end = float(np.max(series.at[good]))
    value, noise = _end(values), noise_of(values).sigma
    return Level(series.name, series.clock, end, rounded(value), rounded(noise), series.better)


def levels_of(study: Study, also: Sequence[str | None] = ()) -> tuple[Level, ...]:
    """Where what a reader watches ended, and the series named in `also`."""
    series = study.run.series
    named = [series[name] for name in also if name is not None and name in series]
    kept = {s.name: s for s in (*judged(study), *named)}
    return tuple(level for s in kept.values() if (level := level_of(s)) is not None)


def _end(values: Floats) -> float:
    return float(np.median(values[-max(1, len(values) // 10) :]))


RATE = ("optimizer.lr", "schedule.")  # what the logged learning rate follows
AS_THEN = 0.01  # a learning rate this near to the old one is the old one: logs print two or three digits


def rates_of(study: Study, knobs: Sequence[str]) -> Rates | None:
    """The rate that a run logged, where an edit is to change it: the first rows, and some over the whole length."""
    series: Series | None = study.maybe("lr")
    if series is None or not any(knob.startswith(RATE) for knob in knobs):
        return None
    good = np.flatnonzero(series.finite & np.isfinite(series.at))
    if len(good) < FEWEST:
        return None
    chosen = np.union1d(good[:8], good[np.linspace(0, len(good) - 1, 24).round().astype(int)])
    at = tuple(rounded(float(v)) for v in series.at[chosen])
    return Rates(series.name, series.clock, at, tuple(rounded(float(v)) for v in series.values[chosen]))


def rate_as_then(run: Run, then: Rates, after: float | None) -> tuple[str, bool]:
    """That the logged rate is the old one wherever both can be seen, in words; nothing: it is not, or is not told.

    `after`: where a resume began; what lies before it is the old run's. And whether the whole of the old record is
    covered: a change of the schedule may come late.
    """
    series = run.series.get(then.series)
    track = None if series is None else series.on(then.clock)
    if series is None or track is None:
        return "", False
    good = np.flatnonzero(np.isfinite(track) & series.finite)
    old = dict(zip(then.at, then.values, strict=True))
    seen = 0
    for spot in good:
        at = rounded(float(track[spot]))
        if at not in old or (after is not None and at <= after):
            continue
        if abs(float(series.values[spot]) - old[at]) > AS_THEN * abs(old[at]):
            return "", False
        seen += 1
    if seen < 3:
        return "", False
    reach = float(track[good].max())
    words = f"the logged learning rate is the old one at each of {seen} positions, up to {then.clock} {reach:,.10g}"
    return words, reach >= 0.9 * max(then.at)


def compare(run: Run, then: Sequence[Level]) -> Compared:
    """The run against where the old one ended."""
    better, worse = [], []
    first: Than | None = None
    for level in then:
        answer = than(run, level)
        if answer is None:
            continue
        told, words = answer
        first = first or told
        if told == "better":
            better.append(words)
        elif told == "worse":
            worse.append(words)
    return Compared(tuple(better), tuple(worse), first)


def than(run: Run, then: Level) -> tuple[Than, str] | None:
    """One score against its level in the old run; None where the new run does not log it."""
    series = run.series.get(then.series)
    track = None if series is None else series.on(then.clock)
    if series is None or track is None or not np.any(np.isfinite(track)):
        return None
    reach = float(np.nanmax(track))
    early = reach < 0.9 * then.at
    about = _about(track, min(then.at, reach))
    if not np.all(np.isfinite(series.values[about])):
        return "worse", f"{series.name} is not finite at {then.clock} {min(then.at, reach):,.10g}"
    now = float(np.median(series.values[about]))
    gain = now - then.value if then.better == "up" else then.value - now
    sigma = noise_of(series.values[series.finite]).sigma
    margin = max(SPREAD * math.hypot(then.noise, sigma), LEAST * abs(then.value))
    words = f"{series.name} is {now:.4g} at {then.clock} {min(then.at, reach):,.10g}; in the old run it ended at {then.value:.4g}"
    if gain > margin:
        return "better", words
    if early:
        return "too early", words
    return ("worse" if gain < -margin else "same"), words


def _about(track: Floats, at: float) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The points of the last tenth of the way to a position; three at least, where there are three."""
    past = np.flatnonzero(np.isfinite(track) & (track <= at * (1 + 1e-9)))
    near = past[track[past] > 0.9 * at]
    chosen: np.ndarray[tuple[int], np.dtype[np.intp]] = near if len(near) >= 3 else past[-3:]
    return chosen if len(chosen) else np.flatnonzero(np.isfinite(track))[:1]
