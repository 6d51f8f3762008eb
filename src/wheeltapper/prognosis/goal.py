"""The chance that a score reaches a target: what a user asks of a run that is under way."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wheeltapper.errors import InputError
from wheeltapper.finding import Finding, Unknown
from wheeltapper.prognosis.forecast import Forecast, forecast
from wheeltapper.run.model import Run, Series
from wheeltapper.study import Study
from wheeltapper.study.statistics import badness

# A single evaluation passes a target by luck; the median of five in a row does not.
ROWS = 5


@dataclass(frozen=True, slots=True)
class Goal:
    name: str  # of a series
    value: float


def goal_of(text: str) -> Goal:
    """
    >>> goal_of("val/accuracy=0.8")
    Goal(name='val/accuracy', value=0.8)
    """
    name, sign, value = text.rpartition("=")
    try:
        wanted = float(value)
    except ValueError:
        wanted = math.nan
    if sign and name.strip() and math.isfinite(wanted):
        return Goal(name.strip(), wanted)
    raise InputError(f"{text!r} is no target.", do="Write it as NAME=VALUE, for example val/accuracy=0.8.")


def toward(study: Study, findings: tuple[Finding, ...], goal: Goal) -> Forecast | Unknown:
    """The forecast of the goal's series with the chance to reach it by the planned end; or why there is none."""
    run = study.run
    series = run.series_named(goal.name)
    if series is None:
        return Unknown(f"no series is called {goal.name}; there are: {_scores(run)}", (goal.name,))
    if series.better not in ("up", "down"):
        return Unknown(f"whether {series.name} should rise or fall is not known", ())
    goal = replace(goal, value=_in_unit(goal.value, series))
    level = _levels(series)
    met = reached(run, goal)
    if met is not None:
        return Unknown(
            f"{series.name} has reached {goal.value:g} already, at {series.clock} {met:,.10g} (median of {ROWS} evaluations)"
        )
    best = float(badness(np.array([level.min()]), series.better)[0]) if len(level) else float("nan")
    if study.get("progress").state == "finished":
        return Unknown(
            f"the run is over, and {series.name} did not reach {goal.value:g} (its best level is {best:.4g})"
        )
    told = forecast(study, findings, series=series)
    if isinstance(told, Unknown):
        return Unknown(f"{told.why} ({series.name} is at {best:.4g} at best, the target is {goal.value:g})", told.needs)
    return replace(told, target=goal.value, chance_of_target=told.chance(goal.value, told.at[-1]))


def reached(run: Run, goal: Goal) -> float | None:
    """Where on the clock of its series the goal was first met, by the median of five evaluations; None if it was not."""
    series = run.series_named(goal.name)
    if series is None or series.better not in ("up", "down"):
        return None
    wanted = badness(np.array([_in_unit(goal.value, series)]), series.better)[0]
    spots = np.flatnonzero(_levels(series) <= wanted)
    return float(series.at[series.finite][spots[0]]) if len(spots) else None


def _in_unit(value: float, series: Series) -> float:
    """A share may be asked for as 0.8 or as 80, whichever way it is logged."""
    if series.unit == "%" and 0 < value <= 1:
        return 100 * value
    return value / 100 if series.unit == "fraction" and 1 < value <= 100 else value


def _levels(series: Series) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The median of the last five finite values at each of them (infinite before there are five), lower is better."""
    x = badness(series.values[series.finite], series.better)
    out = np.full(len(x), np.inf)
    for i in range(min(ROWS, len(x)) - 1, len(x)):
        out[i] = np.median(x[max(0, i - ROWS + 1) : i + 1])
    return out


def _scores(run: Run) -> str:
    known = [name for name, series in run.series.items() if series.better in ("up", "down")]
    return ", ".join(known[:8]) or "none with a direction"
