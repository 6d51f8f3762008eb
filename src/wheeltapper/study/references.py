"""Results that the log names to be beaten or reached, beside the held-out results of the same kind."""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Place
from wheeltapper.reading.record import ClockName
from wheeltapper.run.model import Run, Series
from wheeltapper.run.names import meaning_of
from wheeltapper.study.outcome import RATIO, Curve, curve_of, error_of

Against = tuple[Curve, float, tuple[Place, ...]]
OF_GOALS = {"teacher_accuracy": "accuracy"}


def against(run: Run, clock_ends: dict[ClockName, float], kind: str) -> list[Against]:
    """Held-out curves with the error of each reference of a kind ("floor" or "goal") that is told in the same number."""
    told = [(meaning_of(name.partition(".")[2]).quantity, fact.value, _place(fact.source)) for name, fact in run.facts.items() if name.startswith(f"{kind}.")]
    if kind == "goal":
        told += [(OF_GOALS[s.quantity], float(np.median(s.values[s.finite])), ()) for s in run.series.values() if s.quantity in OF_GOALS and s.finite.any()]
    out: list[Against] = []
    for s in run.series.values():
        if s.split not in ("val", "test") or s.better not in ("up", "down"):
            continue
        curve = curve_of(s, clock_ends)
        for quantity, value, places in told:
            if curve is not None and curve.scale == RATIO and quantity == s.quantity and isinstance(value, int | float):
                error = error_of(s, _in_unit(s, float(value)))
                if error > 0 and np.isfinite(error):
                    out.append((curve, error, places))
    return out


def _in_unit(s: Series, value: float) -> float:
    """A share told in percent, or the other way round, as the series counts."""
    if s.unit == "%" and 0 < value <= 1:
        return 100.0 * value
    return value / 100.0 if s.unit == "fraction" and value > 1 else value


def _place(source: str) -> tuple[Place, ...]:
    file, _, line = source.rpartition(":")
    return (Place(file, int(line)),) if file and line.isdigit() else ()
