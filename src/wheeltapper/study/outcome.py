"""Curves on one footing: every loss and score as an error that should fall, over the share of the run that has passed.

An accuracy becomes 1 - accuracy, decibels the root of the squared error they stand for, a score without a bound is
negated. Ratios of such errors mean the same in every task, which the raw numbers do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wheeltapper.reading.record import ClockName, Floats
from wheeltapper.run.model import Run, Series
from wheeltapper.study import Absent, derived
from wheeltapper.study.curves import Task
from wheeltapper.study.statistics import noise_of, running_median

RATIO = "ratio"  # an error with a zero: ratios of it have a meaning
PLAIN = "plain"  # a number that should fall, without a zero: only differences have a meaning
MOST = 2000  # points: a level is known from fewer
FEWEST = 3


@dataclass(frozen=True)
class Curve:
    """One series as an error that should fall. `share` is the part of the run that had passed at each value."""

    series: Series
    error: Floats
    share: Floats
    index: Floats  # of each value in the series, for places
    scale: str

    def __len__(self) -> int:
        return len(self.error)

    @cached_property
    def noise(self) -> float:
        """Scatter of one value about the trend."""
        return noise_of(self.error).sigma

    @cached_property
    def smooth(self) -> Floats:
        """The trend: a running median over a tenth of the run, of a few values at the ends."""
        n = len(self.error)
        return running_median(self.error, int(np.clip(n // 10, 1, 51)) | 1) if n >= 10 else self.error.copy()

    @cached_property
    def first(self) -> float:
        """Level of the first values: three of a long record, one of a short one."""
        return float(np.median(self.error[: 3 if len(self) >= 30 else 1]))

    @cached_property
    def last(self) -> float:
        """Level at the end: the last twentieth, at least one value."""
        return float(np.median(self.error[-max(1, len(self) // 20) :]))

    @cached_property
    def best(self) -> float:
        return float(np.min(self.smooth))

    @cached_property
    def best_spot(self) -> int:
        return int(np.argmin(self.smooth))

    @cached_property
    def gain(self) -> float:
        """What was won between the first level and the best one."""
        return max(self.first, float(np.median(self.error[: max(1, len(self) // 50)]))) - self.best

    def level(self, share: float) -> float:
        """The trend where this share of the run has passed."""
        return float(np.interp(share, self.share, self.smooth))

    def at(self, spot: int) -> float:
        return float(self.series.at[int(self.index[spot])])

    def shown(self, error: float) -> float:
        """An error as the log writes it: 0.9 again for the accuracy behind an error of 0.1."""
        return _back(error, self.series)


def _top(series: Series) -> float | None:
    """The best possible value of a score that has one."""
    if series.better != "up":
        return None
    if series.unit == "%":
        return 100.0
    if series.unit == "fraction" or series.quantity in ("ssim", "correlation", "mcc", "explained_variance", "r2"):
        return 1.0
    return None


def _error(series: Series, values: Floats) -> tuple[Floats, str]:
    if series.unit == "dB" and series.better == "up":
        return np.power(10.0, -np.clip(values, -100, 200) / 20.0), RATIO
    top = _top(series)
    if top is not None:
        return (top - values) / top, RATIO
    if series.better == "up":
        return -values, PLAIN
    return values.astype(np.float64), RATIO if len(values) and float(np.min(values)) > 0 else PLAIN


def error_of(series: Series, value: float) -> float:
    """A value, as the series counts, as the error that its curve holds."""
    return float(_error(series, np.asarray([value]))[0][0])


def _back(error: float, series: Series) -> float:
    if series.unit == "dB" and series.better == "up":
        return -20.0 * math.log10(max(error, 1e-10))
    top = _top(series)
    if top is not None:
        return top * (1.0 - error)
    return -error if series.better == "up" else error


def curve_of(series: Series, ends: dict[ClockName, float]) -> Curve | None:
    """None where fewer than three values are finite."""
    good = np.flatnonzero(series.finite & np.isfinite(series.at))
    if len(good) < FEWEST:
        return None
    if len(good) > MOST:
        good = good[np.unique(np.linspace(0, len(good) - 1, MOST).round().astype(np.int64))]
    at = np.maximum.accumulate(series.at[good])
    end = max(ends.get(series.clock, 0.0), float(at[-1]), 1e-300)
    error, scale = _error(series, series.values[good])
    return Curve(series, error, at / end, good.astype(np.float64), scale)


@derived
def clock_ends(run: Run) -> dict[ClockName, float]:
    """The last position on every clock that the record knows."""
    out: dict[ClockName, float] = {}
    for s in run.series.values():
        for clock, track in ((s.clock, s.at), *s.clocks.items()):
            if len(track) and np.isfinite(track).any():
                out[clock] = max(out.get(clock, 0.0), float(np.nanmax(track)))
    return out


@derived
def train_curve(train_loss: Series, clock_ends: dict[ClockName, float]) -> Curve:
    """The training loss as a curve."""
    found = curve_of(train_loss, clock_ends)
    if found is None:
        raise Absent("the training loss has fewer than three finite values", ("train/loss",))
    return found


@derived
def steady_curve(train_curve: Curve, shifting: str) -> Curve:
    """The training loss, where it is the same loss throughout: no curriculum, no weight or size that changes by plan."""
    if shifting:
        raise Absent(f"the training loss is not comparable over time: {shifting}")
    return train_curve


@derived
def val_curve(val_loss: Series, clock_ends: dict[ClockName, float]) -> Curve:
    """The loss on held-out data as a curve."""
    found = curve_of(val_loss, clock_ends)
    if found is None:
        raise Absent("fewer than three evaluations have a finite loss", ("val/loss",))
    return found


@derived
def score_curve(val_metrics: tuple[Series, ...], clock_ends: dict[ClockName, float], task: Task) -> Curve:
    """The score that the run is judged by, as a curve: the first of the telling ones that has enough values."""
    for series in val_metrics:
        if task.reinforcement and series.quantity not in ("return", "success"):
            continue
        found = curve_of(series, clock_ends)
        if found is not None:
            return found
    raise Absent("no score on held-out data has three finite values", ("a metric on held-out data",))


@derived
def held_out(score_curve: Curve | None = None, val_curve: Curve | None = None) -> Curve:
    """What speaks for the model on data it was not trained on: its score, else its loss."""
    found = score_curve or val_curve
    if found is None:
        raise Absent("nothing on held-out data is logged", ("a metric on held-out data",))
    return found


@derived
def main_curve(held_out: Curve | None = None, train_curve: Curve | None = None) -> Curve:
    """What speaks for the model best: held-out data, else the training loss."""
    found = held_out or train_curve
    if found is None:
        raise Absent("no loss and no score is logged", ("train/loss",))
    return found
