"""What came out of one repeat, read from its folder by the project's own readers, also while it runs."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wheeltapper import trial as script_side
from wheeltapper.errors import InputError
from wheeltapper.finding import Finding, Unknown
from wheeltapper.rules.signs import ask, signs
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run, Series
from wheeltapper.study import Study
from wheeltapper.trial.engines import STDOUT_FILE
from wheeltapper.trial.model import Outcome, Rule
from wheeltapper.trial.protocol import written

# A remedy that trades the symptom for one of these has mended nothing. The last two a healthy run shows as well
# while it is young, so they count only in runs of full length.
HARD, UNLEARNED = ("not-finite", "diverged", "collapsed"), ("at-chance", "stuck-from-start")
CRASHES = {"crashed", "out-of-memory", "memory-growth"}


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a repeat. `series` None: its metric is not there (yet)."""

    run: Run | None
    series: Series | None
    position: float  # how far it came, on the clock of the trial
    names: tuple[str, ...] = ()  # the series that are there, for a message


def look(folder: Path, metric: str, clock: str) -> Reading:
    """Read what a repeat left so far: what it wrote since it was started, else what it printed."""
    names: list[str] = []
    best: Reading | None = None
    for place in (folder / "out" / script_side.METRICS_FILE, written(folder), folder / STDOUT_FILE):
        for run in _runs_at(place):
            names += run.series
            reading = Reading(run, series_like(run, metric), position_of(run, clock))
            if best is None or (best.series is None and reading.series is not None):
                best = reading
        if best is not None and best.series is not None:
            return best
    if best is None:
        return Reading(None, None, 0.0)
    return Reading(best.run, None, best.position, tuple(dict.fromkeys(names)))


def _runs_at(place: Path) -> list[Run]:
    if not place.exists():
        return []
    try:
        runs = read_runs(place)
    except InputError:
        return []
    # Of several runs in one folder, the one that says most is the training.
    return sorted((run for run in runs if run.series), key=lambda run: -sum(len(s) for s in run.series.values()))


def series_like(run: Run, metric: str) -> Series | None:
    """By name; else, since a hook or a console may spell it otherwise, by the last part if only one has it."""
    found = run.series_named(metric)
    if found is not None:
        return found
    tail = metric.rsplit("/", 1)[-1]
    same = [s for s in run.series.values() if s.name.rsplit("/", 1)[-1] == tail or s.raw == tail]
    return same[0] if len(same) == 1 else None


def position_of(run: Run, clock: str) -> float:
    """How far the record reaches on a clock; 0 where it does not tell."""
    last = 0.0
    for series in run.series.values():
        track = series.on(clock)  # type: ignore[arg-type]
        if track is not None and len(track) and np.isfinite(track).any():
            last = max(last, float(np.nanmax(track)))
    return last


@dataclass(frozen=True, slots=True)
class Shown:
    """Whether a symptom is there (None: cannot be asked), its words, and where it began."""

    ill: bool | None
    text: str = ""
    onset: float | None = None


def shows(run: Run, sign_ids: tuple[str, ...]) -> Shown:
    """Whether one of these signs makes the run ill, asked in their order. Only the first one's onset is told: that
    of another sign could not be held against it."""
    study = Study(run)
    known = {sign.id: sign for sign in signs()}
    told = False
    for sign_id in dict.fromkeys(sign_ids):
        for answer in ask(known[sign_id], study):
            if isinstance(answer, Finding) and answer.severity == "ill":
                return Shown(True, answer.summary, answer.onset if sign_id == sign_ids[0] else None)
            told = told or not isinstance(answer, Unknown)
    return Shown(False) if told else Shown(None, "the record is too short to say whether the symptom is there")


def measure(
    folder: Path, rule: Rule, seed: int, clock: str, upto: float | None, *, crashed: bool = False, whole: bool = True
) -> Outcome:
    """The outcome of a repeat as its record stands. `upto`: later points do not count, so that pairs are of a length;
    `whole`: it is as long as the original."""
    reading = look(folder, rule.metric, clock)
    if reading.run is None:
        broke = True if crashed and rule.symptom in CRASHES else None
        return Outcome(seed, None, broke, 0.0, (), "it left no record that we can read")
    others = (*HARD, *UNLEARNED) if whole else HARD
    seen = shows(reading.run, (rule.symptom, *others)) if rule.symptom else Shown(None)
    if crashed and rule.symptom in CRASHES:
        seen = Shown(True, "it crashed")
    value, note = None, seen.text
    curve: tuple[tuple[float, float], ...] = ()
    if reading.series is None:
        note = note or f"no {rule.metric} in its record; it has {', '.join(reading.names[:8])}"
    else:
        curve = curve_of(reading.series, clock, upto)
        value = endpoint(curve, rule.last)
    run = reading.run
    return Outcome(seed, value, seen.ill, reading.position, curve, note, seen.onset, rates_of(run), print_of(run))


def rates_of(run: Run) -> tuple[float, float] | None:
    """The highest and the last learning rate, where they are logged."""
    lr: Series | None = Study(run).maybe("lr")
    values = None if lr is None else lr.values[lr.finite]
    return None if values is None or not len(values) else (float(values.max()), float(values[-1]))


def print_of(run: Run) -> str:
    """A hash of the training losses; empty where none is logged."""
    loss: Series | None = Study(run).maybe("train_loss")
    return "" if loss is None else hashlib.sha256(loss.values.tobytes()).hexdigest()


def same_run(one: Outcome, two: Outcome) -> bool:
    """Equal to the last bit, NaN included. Where only a score is known that never moved, nothing is."""
    if not one.curve or one.print != two.print:
        return False
    told = bool(one.print) or len({y for _, y in one.curve}) > 1
    return told and np.array_equal(np.array(one.curve), np.array(two.curve), equal_nan=True)


def beyond_recovery(run: Run) -> bool:
    """The last five values of the training loss are not finite: the weights are gone, and waiting shows no more."""
    loss: Series | None = Study(run).maybe("train_loss")
    return loss is not None and len(loss) >= 5 and not bool(loss.finite[-5:].any())


def curve_of(series: Series, clock: str, upto: float | None) -> tuple[tuple[float, float], ...]:
    track = series.on(clock)  # type: ignore[arg-type]
    at = series.at if track is None else track
    keep = np.isfinite(at) if upto is None or track is None else np.isfinite(at) & (at <= upto)
    return tuple(zip(at[keep].tolist(), series.values[keep].tolist(), strict=True))


def endpoint(curve: tuple[tuple[float, float], ...], last: int) -> float | None:
    """The mean of the last evaluations, never the best; not finite as soon as one of them is not.

    >>> endpoint(((0, 3.0), (1, 2.0), (2, 1.0)), 2)
    1.5
    """
    values = [y for _, y in curve[-last:]]
    return (
        math.fsum(values) / len(values)
        if values and all(map(math.isfinite, values))
        else (math.nan if values else None)
    )
