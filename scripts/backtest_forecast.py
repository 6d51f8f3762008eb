"""How often the forecast's 90 % band holds the end: finished runs, cut at earlier points and compared with what came.

    python scripts/backtest_forecast.py FOLDER_OF_RUNS...

A run counts if it is not ill and logs a score and a learning rate. Prints coverage and the width of the band as a share of
what the run gained in all, by the kind of its learning rate; and how calibrated the chance of a target is.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from wheeltapper.errors import WheeltapperError
from wheeltapper.judge.diagnose import diagnose_run
from wheeltapper.prognosis.forecast import Forecast, forecast
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Fact, Run, Series
from wheeltapper.study import Study

CUTS = (0.5, 0.6, 0.7, 0.8, 0.9)


def until(run: Run, clock: str, at: float, total: float) -> Run:
    """The run as it stood at a position, with the length it turned out to have as its plan."""

    def seen(series: Series) -> Series | None:
        track = series.on(clock)  # type: ignore[arg-type]
        return None if track is None else series.where(np.asarray(track <= at))

    cut = {name: s for name, full in run.series.items() if (s := seen(full)) is not None and len(s)}
    facts = {k: v for k, v in run.facts.items() if k not in ("total_steps", "total_epochs")}
    name = "total_epochs" if clock == "epoch" else "total_steps"
    return replace(
        run, series=cut, facts={**facts, name: Fact(name, total, "the end of the record")}, configs=(), events=()
    )


def rows_of(run: Run) -> list[tuple[str, float, bool, float, float]]:
    """(kind of rate, cut, covered, width over gain, where the end lies in the forecast) for each cut that gives a forecast."""
    study = Study(run)
    shape, out = study.maybe("lr_shape"), []
    for series in (study.maybe("main_metric"), study.maybe("val_loss"), study.maybe("train_loss")):
        if series is None or shape is None or int(series.finite.sum()) < 20 or series.clock not in ("step", "epoch"):
            continue
        values, at = series.values[series.finite], series.at[series.finite]
        end = float(np.median(values[-max(3, len(values) // 30) :]))
        gain = abs(end - float(np.median(values[:3])))
        for cut in CUTS:
            part = Study(until(run, series.clock, cut * float(at[-1]), float(at[-1])))
            past = part.run.series.get(series.name)
            told = forecast(part, series=past) if past is not None else None
            if isinstance(told, Forecast) and gain > 0:
                inside = told.low[-1] <= end <= told.high[-1]
                chance = told.chance(end, told.at[-1]) or 0.0
                out.append((shape.kind, cut, inside, (told.high[-1] - told.low[-1]) / gain, chance))
    return out


def main(folders: list[str]) -> None:
    rows: dict[str, list[tuple[str, float, bool, float, float]]] = defaultdict(list)
    for folder in folders:
        for place in sorted(Path(folder).iterdir()):
            try:
                runs = read_runs(str(place))[:2]
            except WheeltapperError:
                continue
            for run in runs:
                if diagnose_run(run).verdict != "ill":
                    rows[folder] += rows_of(run)
    for folder, told in [*rows.items(), ("all", [r for some in rows.values() for r in some])]:
        for kind in sorted({r[0] for r in told}):
            mine = [r for r in told if r[0] == kind]
            cover, width = np.mean([r[2] for r in mine]), np.median([r[3] for r in mine])
            print(f"{folder}  {kind}: {len(mine)} forecasts, {cover:.0%} covered, band {width:.2f} of the gain")
    chances = np.array([r[4] for some in rows.values() for r in some])
    if len(chances):
        print(
            "the end lies below the stated chance:",
            {q: f"{np.mean(chances <= q):.0%}" for q in (0.05, 0.25, 0.5, 0.75, 0.95)},
        )


if __name__ == "__main__":
    main(sys.argv[1:])
