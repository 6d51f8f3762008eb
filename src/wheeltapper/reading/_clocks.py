"""Which columns of a table say where in training a row stands.

Steps counted anew in every epoch are turned into steps of the run, and how many an epoch has is told as a
Fact. Nothing is guessed beyond names: a table without such a column counts its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from wheeltapper.reading._table import HOLE, NOTHING_STATED, Stated, Table
from wheeltapper.reading._text import seconds
from wheeltapper.reading.record import ClockName, Fact, Floats, Note, Reading

STEP = (
    "step", "global_step", "_global_step", "train/global_step", "trainer/global_step", "train_step", "steps",
    "global_steps", "current_steps", "iter", "iteration", "iters", "iterations", "global_iter", "global_iteration",
    "it", "n_iter", "num_updates", "update", "updates", "optimizer_step", "training_step", "time/total_timesteps",
    "total_timesteps", "timesteps_total", "timesteps", "misc/total_timesteps", "total/steps", "nupdates", "training_iteration", "_step", "batch_idx", "batch",
    "#",  # spaCy's
    "itr", "training_steps", "train_steps", "global-step", "env_steps", "env_step", "frames", "totalenvinteracts", "total_env_steps", "num_env_steps", "i",
)  # fmt: skip
# Names that count steps in some programs and something else in others: believed where they plainly count.
ODD_STEP = (
    "gs", "gstep", "upd", "upds", "ups", "nupd", "n_upd", "num_upd", "opt_step", "opt_steps", "tick", "it_num", "iter_num", "iter_no",
    "it_no", "nit", "niter", "step_num", "step_no", "nstep", "nsteps", "n_steps", "n_step", "stp", "batches", "n_batches", "num_batches",
    "mb", "minibatch", "minibatches", "batch_no", "grad_steps", "gradient_steps", "train_iter", "train_iters", "trees", "num_trees",
    "n_trees", "boost_round", "boosting_round", "t", "k", "n",
)  # fmt: skip
ODD_EPOCH = (
    "round", "rounds", "rnd", "comm_round", "communication_round", "server_round", "fl_round", "ep_num", "epoch_no", "epo", "epc", "eps",
    "pass", "sweep", "cycle", "generation", "gen",
)  # fmt: skip
EPOCH = ("epoch", "epochs", "current_epoch", "train/epoch", "epoch_num", "num_epoch", "ep", "e", "epoch_idx", "epoch_id")
SAMPLE = (
    "samples", "samples_seen", "num_samples_seen", "consumed_samples", "consumed_train_samples", "nimg", "images_seen",
    "progress/kimg", "kimg",
)  # fmt: skip
TOKEN = (
    "tokens", "tokens_seen", "num_tokens", "total_tokens", "consumed_tokens", "num_input_tokens_seen", "train/tokens",
    "train/num_input_tokens_seen", "n_tokens", "token",
)  # fmt: skip
SECOND = (
    "timestamp", "_timestamp", "wall_time", "walltime", "wall", "time_elapsed", "elapsed_time", "elapsed", "_runtime",
    "relative_time", "time/time_elapsed", "seconds", "train_time", "time", "date", "datetime", "training_time",
)  # fmt: skip
# Names of a clock by which the row of an episode may tell how many steps it took.
LENGTHS = {"step", "steps", "timesteps", "total/steps", "iterations"}
INDEX = ("column 1", "Unnamed: 0", "index", "row")  # what pandas leaves of its index: the number of the row
LEAST_COUNTED = 5  # rows that count up: fewer may be any numbers
# Units are part of some names; positions are told in the clock's own unit.
THOUSANDS = {"kimg", "progress/kimg"}


@dataclass(slots=True)
class Clocks:
    """The clock a table is read by, the other clocks of its rows, and the columns used up for them."""

    clock: ClockName
    at: Floats
    others: dict[ClockName, Floats] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    facts: list[Fact] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def clocks_of(table: Table) -> Clocks:
    """Find the positions of the rows: by step if they are told, else epoch, sample, token, second, row."""
    lower = {name.lower(): name for name in reversed(list(table.columns))}
    found: dict[ClockName, Floats] = {}
    used: set[str] = set()
    for clock, names in (("step", STEP), ("epoch", EPOCH), ("sample", SAMPLE), ("token", TOKEN)):
        for name in names:
            column = table.column(lower[name]) if name in lower else None
            if column is None or not _counts(column, strict=clock in ("sample", "token")):
                continue
            if clock == "step" and name in LENGTHS and _measures(column, beside=_episodes(table, lower)):
                continue
            found[clock] = _carried(column) * (1000.0 if name in THOUSANDS else 1.0)  # type: ignore[index]
            used.add(lower[name])
            break
    _add_odd_counters(table, lower, found, used)
    turns = _through_restarts(table, lower, found, used)
    _add_seconds(table, lower, found, used)
    if turns:
        found.clear()
    used |= {name for name in INDEX if name in table.columns and _is_index(table.columns[name])}
    notes: list[Note] = []
    facts: list[Fact] = []
    if not found and (counted := _counter(table)) is not None:
        return counted
    if "step" in found and "epoch" in found and counted_anew(found["epoch"], found["step"]):
        per_epoch, how = steps_per_epoch(found["epoch"], found["step"])
        first = 0.0 if float(np.nanmin(found["epoch"])) < 1 else 1.0  # a resumed log begins later, not at its minimum
        found["step"] = (found["epoch"] - first) * per_epoch + found["step"]
        facts.append(Fact("steps_per_epoch", int(per_epoch), f"{table.file}: {how}", derived=True))
        notes.append(Note(f"steps are counted anew in every epoch; {how}", table.file))
    for clock in ("step", "epoch", "sample", "token", "second"):
        if clock in found:
            at = found.pop(clock)
            return Clocks(clock, at, dict(found), used, facts, notes)
    if len(table) > 1:
        notes.append(Note("no column says the step or epoch: rows are counted", table.file))
    return Clocks("row", np.arange(len(table), dtype=np.float64), {}, used, facts, notes)


def _counter(table: Table) -> Clocks | None:
    """The first column of a table without names, where it plainly counts. What it counts it does not say: by ones these
    may be steps or epochs, so they are rows; by more, an epoch is not what is meant."""
    first = table.columns.get("column 1")
    if (
        first is None
        or len(first) < LEAST_COUNTED
        or len(table.columns) < 2
        or not set(table.columns) <= _numbered(table)
    ):
        return None
    change = np.diff(first)
    rises = change[change > 0]
    if not np.all(np.isfinite(first)) or np.any(first < 0) or np.any(first % 1) or not len(rises):
        return None
    every = float(np.median(rises))
    if float(np.mean(change == every)) < 0.9 or not np.all(first[1:][change < 0] <= first[0] + every):
        return None
    says = f"the first column has no name; it counts by {every:g}, so it tells where a row stands"
    return Clocks("row" if every == 1 else "step", first, {}, {"column 1"}, [], [Note(says, table.file)])


def _numbered(table: Table) -> set[str]:
    return {f"column {i}" for i in range(1, len(table.columns) + 1)}


def reading_by_clocks(
    table: Table,
    format: str,
    stated: Stated | Callable[[str], Stated] = NOTHING_STATED,
    *,
    skip: Iterable[str] = (),
    facts: Iterable[Fact] = (),
    notes: Iterable[Note] = (),
) -> Reading:
    """The whole table as series over the clocks its columns tell; `skip` names columns that are no series."""
    clocks = clocks_of(table)
    points = table.points(clocks.clock, clocks.at, clocks.others, skip={*clocks.used, *skip}, stated=stated)
    told = [*clocks.facts, *facts]
    return table.reading(format, points, facts=told, notes=[*clocks.notes, *notes], words=clocks.used)


def _counts(column: Floats, *, strict: bool) -> bool:
    """Does a column count something up? A constant does not; `strict` asks that it rarely falls."""
    said = column[np.isfinite(column)]
    if len(said) == 0 or bool(np.any(said < 0)):
        return False
    if len(said) == 1:
        return not strict
    change = np.diff(said)
    if not bool(np.any(change > 0)):
        return False
    return not strict or float(np.mean(change >= 0)) > 0.9  # relaunches may fall, now and then


def _add_odd_counters(table: Table, lower: dict[str, str], found: dict[ClockName, Floats], used: set[str]) -> None:
    odd: tuple[tuple[ClockName, tuple[str, ...]], ...] = (("step", ODD_STEP), ("epoch", ODD_EPOCH))
    for clock, names in odd:
        name = next((n for n in names if n in lower and plainly_counts(table.said(lower[n]))), "")
        column = table.column(lower[name]) if name and clock not in found else None
        if column is not None:
            found[clock] = _carried(column)
            used.add(lower[name])


def plainly_counts(column: Floats) -> bool:
    """Whole numbers that never fall, rise on most rows, and begin near none."""
    if len(column) < LEAST_COUNTED or not np.all(np.isfinite(column)) or np.any(column % 1) or np.any(column < 0):
        return False
    change = np.diff(column)
    usual = float(np.median(change))
    return bool(np.all(change >= 0)) and float(np.mean(change > 0)) > 0.5 and column[0] <= 5 * max(usual, 1.0)


def _measures(column: Floats, *, beside: bool) -> bool:
    """The steps that an episode took, not where it stands: they fall on every third row or more, and to ever other
    numbers; or at all, `beside` a count of episodes. Steps counted anew in every epoch fall to the same one."""
    said = column[np.isfinite(column)]
    falls = np.flatnonzero(np.diff(said) < 0) + 1
    if beside:
        return len(falls) > 0
    return len(falls) > max(4, 0.3 * len(said)) and len(np.unique(said[falls])) > 0.25 * len(falls)


def _episodes(table: Table, lower: dict[str, str]) -> bool:
    """Does a column count episodes?"""
    column = next((table.column(lower[name]) for name in ("episode", "episodes", "game") if name in lower), None)
    said = column[np.isfinite(column)] if column is not None else np.empty(0)
    return len(said) > 2 and bool(np.mean(np.diff(said) >= 0) > 0.9) and bool(said[-1] > said[0])


def _through_restarts(table: Table, lower: dict[str, str], found: dict[ClockName, Floats], used: set[str]) -> bool:
    """Stable-Baselines counts the time steps of every call of learn() anew, and its updates throughout: one training. Where
    agents take turns in one table, their updates grow from turn to turn as well: then the rows are counted (True)."""
    if "step" not in found or not bool(np.any(np.diff(found["step"]) < 0)):
        return False
    column = table.column(lower["train/n_updates"]) if "train/n_updates" in lower else None
    known = np.isfinite(column) if column is not None else np.zeros(0, dtype=bool)
    if column is None or int(known.sum()) < 3:
        return False
    said = column[known]
    if bool(np.all(np.diff(said) >= 0)) and said[-1] > said[0]:
        found["step"] = _carried(column)
        used.add(lower["train/n_updates"])
        return False
    ends = _carried(column)[np.append(np.flatnonzero(np.diff(found["step"]) < 0), len(column) - 1)]
    return len(ends) > 4 and bool(np.all(ends[2:] >= ends[:-2])) and ends[-1] > ends[0]


def _is_index(column: Floats) -> bool:
    return len(column) > 1 and bool(np.all(np.diff(column) == 1)) and column[0] in (0, 1)


def _carried(column: Floats) -> Floats:
    """Positions for every row: one that does not tell stands where the row before it stood."""
    known = np.isfinite(column)
    if bool(known.all()):
        return column
    spot = np.maximum.accumulate(np.where(known, np.arange(len(column)), -1))
    first = int(np.argmax(known))
    return np.asarray(column[np.where(spot < 0, first, spot)])


def _add_seconds(table: Table, lower: dict[str, str], found: dict[ClockName, Floats], used: set[str]) -> None:
    words = {name.lower(): name for name in table.texts}
    for name in SECOND:
        if name in lower:
            track = table.column(lower[name])
        elif name in words:
            track = np.full(len(table), np.nan)
            for row, cell in table.texts[words[name]].items():
                stamp = seconds(cell)
                stamp = duration(cell) if stamp is None else stamp
                track[row] = np.nan if stamp is None else stamp
        else:
            continue
        # The time that a step or an epoch took also has such a name: only what keeps growing is a clock.
        said = track[np.isfinite(track)] if track is not None else np.empty(0)
        if track is not None and len(said) > 2 and bool(np.mean(np.diff(said) >= 0) > 0.9) and said[-1] > said[0]:
            found["second"] = _carried(track)
            used.add(lower.get(name) or words[name])
            return


def duration(text: str) -> float | None:
    """Seconds of "1 day, 0:10:30", "12:00", "59h:30m:19s"; None if it is not a duration.

    >>> duration("1 day, 0:10:30"), duration("59h:30m:19s"), duration("soon")
    (87030.0, 214219.0, None)
    """
    days, _, rest = text.rpartition("day")
    parts = rest.lstrip("s, ").replace("h", "").replace("m", "").rstrip("s").split(":")
    total = 0.0
    if not 2 <= len(parts) <= 3:
        return None
    try:
        for part in parts:
            total = 60 * total + float(part)
        return total + (86400.0 * float(days) if days else 0.0)
    except ValueError:
        return None


def counted_anew(epoch: Floats, step: Floats) -> bool:
    """Is `step` counted within the epoch? Then it falls when the epoch rises, and (nearly) only then."""
    if not bool(np.any(np.diff(epoch) > 0)):
        return False
    rises = np.diff(epoch) > 0
    falls = np.diff(step) < 0
    restarts = np.diff(epoch) < 0  # both fall: another launch, which says nothing here
    return bool(np.mean(falls[rises]) > 0.5) and int(np.sum(falls & ~rises & ~restarts)) <= 0.1 * int(np.sum(rises))


def steps_per_epoch(epoch: Floats, step: Floats) -> tuple[float, str]:
    """How many steps an epoch has, from steps counted within epochs, and how that is known."""
    whole = epoch < np.nanmax(epoch)  # the last epoch may be cut
    last = float(np.nanmax(step[whole])) if bool(whole.any()) else float(np.nanmax(step))
    gaps = np.diff(step)
    every = float(np.median(gaps[gaps > 0])) if bool(np.any(gaps > 0)) else 1.0
    low = last + 1 if float(np.nanmin(step)) == 0 else last
    if every <= 1:
        return low, f"{low:g} steps in a whole epoch"
    return low, f"the last step told in a whole epoch is {last:g}, told every {every:g}: {low:g} to {low + every - 1:g}"


def said_positions(column: Floats) -> Floats:
    """A raw column as positions: holes as NaN, then carried from the row before."""
    return _carried(np.where(column == HOLE, np.nan, column))
