"""Where the rows of a log stand: positions on clocks, from what the rows themselves print.

A row that prints a step stands there. One that prints (epoch, batch) stands on the step clock if the number
of batches per epoch is printed or follows exactly from the rows; otherwise on the epoch clock, in fractions.
A row that prints nothing takes the place of the nearest row before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from wheeltapper.reading._counters import through_the_run
from wheeltapper.reading._phases import Phases
from wheeltapper.reading._rows import Role, Table
from wheeltapper.reading._split_words import split_of
from wheeltapper.reading.record import ClockName, Fact, Floats, Ints, Note, Points

_OWN: tuple[ClockName, ...] = ("step", "micro_step", "sample", "token", "epoch", "second")


@dataclass(slots=True)
class _Stand:
    """One table with its positions."""

    table: Table
    lines: Ints
    clock: ClockName | None = None
    at: Floats | None = None
    clocks: dict[ClockName, Floats] = field(default_factory=dict)

    def on(self, clock: ClockName) -> Floats | None:
        return self.at if clock == self.clock else self.clocks.get(clock)


@dataclass(frozen=True, slots=True)
class Anchors:
    """Every position the log printed, by line: it places what has no position of its own."""

    clock: ClockName | None
    tracks: dict[ClockName, tuple[Ints, Floats]]

    def at(self, lines: Ints, clock: ClockName) -> Floats:
        """The last position printed at or before each line; one interval before the first for those above it."""
        known, values = self.tracks[clock]
        index = np.searchsorted(known, lines, side="right") - 1
        gaps = np.diff(values)
        gaps = gaps[gaps > 0]
        start = max(0.0, float(values[0]) - float(np.median(gaps))) if len(gaps) else 0.0
        return np.where(index >= 0, values[np.maximum(index, 0)], start)

    def one(self, line: int) -> tuple[float | None, ClockName | None]:
        if self.clock is None or line < self.tracks[self.clock][0][0]:
            return None, None  # before the first row nothing tells where the run stood
        return float(self.at(np.asarray([line], dtype=np.int64), self.clock)[0]), self.clock


@dataclass(frozen=True, slots=True)
class Placed:
    points: tuple[Points, ...]
    facts: tuple[Fact, ...]
    notes: tuple[Note, ...]
    anchors: Anchors


def place(
    tables: Iterable[Table],
    file: str,
    *,
    first_epoch: int | None = None,
    steps_per_epoch: float | None = None,
    phases: Phases | None = None,
) -> Placed:
    """Points from tables. `first_epoch`: the number the format gives the first epoch, if it is fixed."""
    tables = [t for t in tables if len(t.lines)]
    tables = through_the_run(tables)
    stands = [_Stand(t, t.line_numbers()) for t in tables]
    first = _first_epoch(stands) if first_epoch is None else first_epoch
    facts: list[Fact] = []
    notes: list[Note] = []
    per_epoch, bounded = steps_per_epoch, False
    for role, name in (("inner", "steps_per_epoch"), ("inner_sample", "samples_per_epoch")):
        exact, why = _epoch_length(stands, role)  # type: ignore[arg-type]
        if exact is not None:
            facts.append(Fact(name, exact, why, derived=True))
        elif why and steps_per_epoch is None:
            bounded = True
            notes.append(Note(f"{name} is not printed ({why}); rows stand on the epoch clock", file))
        per_epoch = per_epoch or exact
    lengths = _lengths(stands)
    for stand in stands:
        _stand_on(stand, first, per_epoch, bounded, lengths)
    _close_epochs(stands, first, lengths.get(0.0, per_epoch))
    anchors = _anchors(stands)
    for stand in stands:
        if stand.at is None:
            _take_place(stand, anchors, lengths.get(0.0, per_epoch))
    return Placed(_points(stands, file, phases), tuple(facts), tuple(notes), anchors)


STILL = 5  # rows at one position before it is taken for none


def _stands_still(table: Table, clock: ClockName, track: Floats) -> bool:
    """'epoch': 0.0 on every row: a fraction printed with too few digits tells no place. No more does "Iteration 1" of a
    fit that is called anew for every row."""
    if len(track) < STILL or table.column("inner") is not None or table.last:
        return False
    return bool(np.all(track == 0)) if clock == "epoch" else clock == "step" and bool(np.all(track == track[0]))


def _first_epoch(stands: list[_Stand]) -> int:
    seen = [track.min() for s in stands if (track := s.table.column("epoch")) is not None and len(track)]
    return 0 if not seen or min(seen) < 1 else 1


def _epoch_length(stands: list[_Stand], role: Role) -> tuple[float | None, str]:
    """Exact ticks per epoch if the rows establish it, and how; or None and why not."""
    parts = [
        (s.lines, s.table.column("epoch"), s.table.column(role))
        for s in stands
        if s.table.column(role) is not None and "per_epoch" not in s.table.constants
    ]
    told = [(ls, e, i) for ls, e, i in parts if e is not None and i is not None]
    if not told:
        return None, ""
    order = np.argsort(np.concatenate([ls for ls, _, _ in told]), kind="stable")
    epoch = np.concatenate([e for _, e, _ in told])[order]
    inner = np.concatenate([i for _, _, i in told])[order]
    if len(inner) < 2:
        return None, "one row only"
    same = epoch[1:] == epoch[:-1]
    gaps = np.diff(inner)[same]
    gaps = gaps[gaps > 0]
    every = float(np.median(gaps)) if len(gaps) else 1.0
    ends = np.flatnonzero(epoch[1:] == epoch[:-1] + 1)  # the last row of an epoch that the next one follows
    longest = float(inner.max())
    if len(ends) < 2:
        return None, "no two complete epochs"
    starts = inner[ends + 1]
    if len(np.unique(starts)) > 1:
        # Rows come every `every` ticks of a counter that runs on across epochs, so the seam tells the length.
        lengths = every + inner[ends] - starts
        length = float(np.median(lengths))
        if np.mean(lengths == length) > 0.9 and length >= longest:
            return length, f"rows come every {every:g} ticks across epoch ends: {length:g} per epoch"
    elif len(gaps) and len(np.unique(inner[ends])) == 1:
        final = inner[ends] - inner[ends - 1]
        if np.all(final != every) and np.all(same[ends - 1]):
            length = float(inner[ends][0] + (1 if starts[0] == 0 else 0))
            return length, f"the last batch of every epoch is printed: {length:g} per epoch"
    return None, f"rows come every {every:g} ticks and stop at {longest:g}"


def _lengths(stands: list[_Stand]) -> dict[float, float]:
    """The epoch length to use for each printed one; key 0 is the commonest of all.

    A loader may print 187 and 188 in turn; taking both at their word would make steps jump back.
    """
    rows: dict[float, int] = {}
    for s in stands:
        if length := s.table.constants.get("per_epoch"):
            rows[length] = rows.get(length, 0) + len(s.lines)
    out = {length: max((k for k in rows if abs(k - length) <= 0.02 * length), key=lambda k: rows[k]) for length in rows}
    if rows:
        out[0.0] = out[max(rows, key=lambda k: rows[k])]
    return out


def _close_epochs(stands: list[_Stand], first: int, length: float | None) -> None:
    """A line about a whole epoch is written at its end: its step is the end of the epoch the rows before it
    are in. Where no row tells a step, the epoch number does."""
    whole = [s for s in stands if s.clock == "epoch" and s.at is not None and "step" not in s.clocks]
    whole = [s for s in whole if s.table.column("inner") is None and s.table.column("inner_sample") is None]
    if not length or not whole:
        return
    told = [(s.lines, s.at) for s in stands if s.clock == "step" and s.at is not None and s.table.anchor]
    if told:
        lines = np.concatenate([ls for ls, _ in told])
        order = np.argsort(lines, kind="stable")
        track = (lines[order], np.concatenate([at for _, at in told])[order])
        steps = Anchors("step", {"step": track})
    for s in whole:
        assert s.at is not None
        if told:
            s.clocks["step"] = np.ceil(steps.at(s.lines, "step") / length - 1e-9) * length
        elif np.all(s.at == np.floor(s.at)):
            s.clocks["step"] = (s.at - first + 1) * length


def _stand_on(stand: _Stand, first: int, per_epoch: float | None, bounded: bool, lengths: dict[float, float]) -> None:
    table = stand.table
    own: dict[ClockName, Floats] = {}
    for clock in _OWN:
        track = table.column(clock)  # type: ignore[arg-type]
        if track is not None and not _stands_still(table, clock, track):
            own[clock] = track
    time = table.column("time")
    if time is not None and "second" not in own:
        own["second"] = time
    inner, samples = table.column("inner"), table.column("inner_sample")
    epoch = own.get("epoch")
    printed = table.constants.get("per_epoch")
    length = lengths[printed] if printed else lengths.get(0.0, per_epoch)
    ticks = inner if inner is not None else samples
    if ticks is not None and epoch is not None:
        unit: ClockName = "step" if inner is not None else "sample"
        if length:
            own.setdefault(unit, (epoch - first) * length + ticks)
            own["epoch"] = epoch - first + ticks / length
        elif bounded:
            own["epoch"] = epoch - first + ticks / _bounds(epoch, ticks)
    elif ticks is not None and "step" not in own and (total := table.constants.get("bar_total", length)):
        laps = _laps(ticks, total)
        own["step" if inner is not None else "sample"] = laps * total + ticks
        if "bar_total" not in table.constants:
            own.setdefault("epoch", laps + ticks / total)
    if stand.at is None:
        for clock in _OWN[:-1]:
            if clock in own:
                stand.clock, stand.at = clock, own[clock]
                break
    stand.clocks = {clock: track for clock, track in own.items() if clock != stand.clock}


def _bounds(epoch: Floats, ticks: Floats) -> Floats:
    """An upper bound of the epoch length for every row: what its own launch has shown, and one interval more.
    Launches of one log may differ in batch size."""
    launch = np.concatenate([[0], np.cumsum(np.diff(epoch) < 0)])
    out = np.empty(len(ticks))
    for index in range(int(launch[-1]) + 1 if len(launch) else 0):
        mine = ticks[launch == index]
        gaps = np.diff(mine)
        gaps = gaps[gaps > 0]
        out[launch == index] = mine.max() + (np.median(gaps) if len(gaps) else 1.0)
    return np.maximum(out, 1.0)


def _laps(ticks: Floats, length: float) -> Floats:
    """How many times a counter has run through before each row. A fall from less than half is a restart."""
    falls = np.flatnonzero(np.diff(ticks) < 0)
    step = np.zeros(len(ticks))
    step[falls[ticks[falls] >= 0.5 * length] + 1] = 1
    return np.cumsum(step)


def _anchors(stands: list[_Stand]) -> Anchors:
    fixed = [s for s in stands if s.at is not None and s.table.anchor]
    if not fixed:
        return Anchors(None, {})
    counts = {name: sum(len(s.lines) for s in fixed if s.clock == name) for name in _OWN}
    tracks: dict[ClockName, tuple[Ints, Floats]] = {}
    for clock in _OWN:
        told = [(s.lines, track) for s in fixed if (track := s.on(clock)) is not None]
        if told:
            lines = np.concatenate([ls for ls, _ in told])
            values = np.concatenate([vs for _, vs in told])
            order = np.argsort(lines, kind="stable")
            tracks[clock] = (lines[order], values[order])
    busiest: ClockName = max(_OWN, key=lambda name: counts[name])
    return Anchors(busiest, tracks)


def _take_place(stand: _Stand, anchors: Anchors, length: float | None) -> None:
    if anchors.clock is None:
        stand.clock, stand.at = "row", np.arange(len(stand.lines), dtype=np.float64)
        return
    # The clock of the anchors nearest before these lines, not the commonest of the file.
    best, best_line = anchors.clock, -1.0
    for clock in sorted(anchors.tracks, key=lambda name: name != anchors.clock):
        if clock == "second":
            continue
        lines = anchors.tracks[clock][0]
        index = np.searchsorted(lines, stand.lines, side="right") - 1
        near = float(np.mean(np.where(index >= 0, lines[np.maximum(index, 0)], 0)))
        if near > best_line:
            best, best_line = clock, near
    stand.clock, stand.at = best, anchors.at(stand.lines, best)
    for clock in anchors.tracks:
        if clock != best and clock not in stand.clocks:
            stand.clocks[clock] = anchors.at(stand.lines, clock)
    if best == "step" and length and any(f.split in ("val", "test") for f in stand.table.fields):
        # An evaluation between the last row of an epoch and the first of the next was run at the epoch's end.
        lines, steps = anchors.tracks["step"]
        after = np.minimum(np.searchsorted(lines, stand.lines, side="right"), len(lines) - 1)
        inside = (lines[after] > stand.lines) & (steps[after] > stand.at)  # not at a restart
        crossed = np.floor(steps[after] / length) > np.floor(stand.at / length)
        if inside.any() and np.mean(crossed[inside]) > 0.8:
            stand.at = np.ceil(stand.at / length - 1e-9) * length
            if "epoch" in stand.clocks:
                stand.clocks["epoch"] = np.ceil(stand.clocks["epoch"] - 1e-9)


def _points(stands: list[_Stand], file: str, phases: Phases | None) -> tuple[Points, ...]:
    parts: dict[tuple[Any, ...], list[tuple[Ints, Floats, Floats, dict[ClockName, Floats]]]] = {}
    of_batches = {(f.name, f.split) for s in stands if _inside(s.table) for f in s.table.fields if f.role == "value"}
    for stand in stands:
        assert stand.at is not None
        table = stand.table
        whole = table.column("epoch") is not None and table.column("step") is None and not _inside(table)
        keep = np.ones(len(stand.lines), dtype=bool)
        ranks = table.column("rank")
        several = np.unique(ranks) if ranks is not None else np.empty(0)
        for spec, store in zip(table.fields, table.columns, strict=True):
            if spec.role != "value":
                continue
            values = np.frombuffer(store, dtype=np.float64) * spec.scale
            told = phases.splits_of(stand.lines) if phases and spec.split is None and split_of(spec.name) is None else None
            for rank, split in product(several if len(several) > 1 else [None], _each(told, spec.split)):
                mask = keep if rank is None or ranks is None else keep & (ranks == rank)
                mask = mask if told is None else mask & (told == split)
                who = None if rank is None else int(rank)
                # "Epoch 9 Batch 100 Loss 0.52" and then "Epoch 9 Loss 0.51": the one of the epoch is another series.
                window = spec.window or ("epoch" if whole and (spec.name, spec.split) in of_batches else None)
                window = "eval" if told is not None and split in ("val", "test") else window
                key = (spec.name, split, spec.about, stand.clock, who, window, spec.unit, table.last)
                clocks = {clock: track[mask] for clock, track in stand.clocks.items()}
                parts.setdefault(key, []).append((stand.lines[mask], values[mask], stand.at[mask], clocks))
    return tuple(_joined(key, tuple(found), file) for key, found in parts.items())


def _each(told: Any, stated: str | None) -> list[str | None]:
    """The splits of the rows of one column."""
    return [stated] if told is None else list(dict.fromkeys(told.tolist()))


def _inside(table: Table) -> bool:
    return table.column("inner") is not None or table.column("inner_sample") is not None


def _joined(key: tuple[Any, ...], parts: tuple[Any, ...], file: str) -> Points:
    name, split, about, clock, rank, window, unit, last = key
    if len(parts) == 1:
        lines, values, at, clocks = parts[0]
        at = at.copy()
    else:
        lines = np.concatenate([p[0] for p in parts])
        order = np.lexsort((np.concatenate([p[2] for p in parts]), lines))  # a bar draws all its states on one line
        lines = lines[order]
        values, at = (np.concatenate([p[i] for p in parts])[order] for i in (1, 2))
        names = {other for p in parts for other in p[3]}
        clocks = {
            other: np.concatenate([p[3].get(other, np.full(len(p[0]), np.nan)) for p in parts])[order]
            for other in names
        }
    if last and len(at):  # of the states of a progress bar only the last counts
        final = np.append(at[1:] != at[:-1], True)
        lines, values, at = lines[final], values[final], at[final]
        clocks = {other: track[final] for other, track in clocks.items()}
    return Points(
        name=name,
        values=values,
        at=at,
        clock=clock,
        file=file,
        lines=lines,
        clocks=clocks,
        unit=unit,
        split=split,
        about=about,
        window=window,
        rank=rank,
    )
