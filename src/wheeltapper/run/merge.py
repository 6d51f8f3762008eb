"""Readings of one run -> Run: restarts, rewinds, duplicates, several files, several ranks.

A position that falls is a restart. The later launch wins from where it began; what it overwrote is kept
as a dead branch, because it is evidence (of a crash, a resume that jumped, a curve that differs). Files
that tell the same thing twice are recognised by their values and kept once.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wheeltapper.reading.record import Floats, Note, Points, Reading
from wheeltapper.run.company import meanings_of
from wheeltapper.run.copies import without_copies
from wheeltapper.run.evaluations import as_evaluations
from wheeltapper.run.facts import checkpoints_of, facts_of
from wheeltapper.run.launches import between_files, find_launches
from wheeltapper.run.model import Run, Segment, Series, Split, repeated, same_values
from wheeltapper.run.names import Meaning, canonical
from wheeltapper.run.scale import same_scale

REMARKS = 2  # rows that may be remarks, where another spelling has FEW times as many
FEW = 8
REDRAWN = 4  # rows of one position on one line, on average, that only a bar writes


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A stretch of one series, in one launch of one file, with rising positions."""

    launch: int
    at: Floats
    values: Floats
    lines: Any
    file: str
    clocks: dict[Any, Floats]

    def cut(self, keep: Any) -> _Chunk:
        return replace(
            self,
            at=self.at[keep],
            values=self.values[keep],
            lines=self.lines[keep],
            clocks={name: track[keep] for name, track in self.clocks.items()},
        )


def merge(readings: Sequence[Reading], *, name: str, root: str, scripts: Sequence[str] = ()) -> Run:
    """One Run out of everything its files told."""
    notes: list[Note] = [note for reading in readings for note in reading.notes]
    points = [p for reading in readings for p in reading.points if len(p.values)]
    points, rank_notes = _main_rank(points)
    notes += rank_notes
    points = _in_time_order(points)
    points = without_copies(points, meanings_of(points))
    points = _without_summaries(points, meanings_of(points))
    events = tuple(event for reading in readings for event in reading.events)
    launches, segments = find_launches(points, events)
    grouped = _grouped(points)
    series: dict[str, Series] = {}
    dead: dict[str, tuple[Series, ...]] = {}
    for label, (members, meaning) in grouped.items():
        columns = [_chunks(p, launches) for p in members]
        if meaning.inferred:
            notes.append(Note(f"`{members[0].name}` is read as {label}: {meaning.inferred}", members[0].file))
        if all(p.woven for p in members):
            series[label] = _in_order(_series(label, members[0], meaning, [c for column in columns for c in column]))
            continue
        live, overwritten, dropped = _weave(columns, segments)
        if live:  # else it was told by launches only that another one took the place of
            series[label] = _series(label, members[0], meaning, live)
        if overwritten:
            dead[label] = tuple(_series(label, members[0], meaning, [chunk]) for chunk in overwritten)
        notes += dropped
    series = same_scale(_without_echoes(series))
    segments = _dead_from(between_files(segments, [members for members, _ in grouped.values()]))
    facts = facts_of(readings, series)
    return Run(
        name=name,
        root=root,
        formats=tuple(dict.fromkeys(reading.format for reading in readings)),
        series=dict(sorted(series.items(), key=lambda item: _order(item[1]))),
        dead=dead,
        facts=facts,
        configs=tuple(tree for reading in readings for tree in reading.configs),
        checkpoints=checkpoints_of(readings, root),
        events=events,
        segments=segments,
        notes=tuple(notes),
        files=tuple(dict.fromkeys(reading.file for reading in readings)),
        scripts=tuple(scripts),
    )


def _order(series: Series) -> tuple[int, int, str]:
    """Whole losses first, then metrics, then components, then the machine."""
    rank = {"loss": 0, "lr": 3, "grad_norm": 3, "loss_scale": 3, "duration": 6, "throughput": 6, "memory": 6}
    level = rank.get(series.quantity or "", 2 if series.quantity else 5)
    return (
        level + (1 if series.part else 0),
        {"train": 0, "val": 1, "test": 2}.get(series.split or "", 3),
        series.name,
    )


def _main_rank(points: list[Points]) -> tuple[list[Points], list[Note]]:
    ranks = {p.rank for p in points if p.rank is not None}
    if len(ranks) < 2:
        return points, []
    keep = min(ranks)
    file = next(p.file for p in points if p.rank is not None)
    text = f"{len(ranks)} ranks log here; the series are those of rank {keep}"
    return [p for p in points if p.rank in (None, keep)], [Note(text, file)]


def _without_summaries(points: list[Points], meanings: list[Meaning]) -> list[Points]:
    """The last value of a series, told by itself in a file of results, is no launch of the run."""
    rows: dict[str, int] = defaultdict(int)
    for p in points:
        rows[p.file] = max(rows[p.file], len(p.at))
    curves = {(m.quantity, m.split) for p, m in zip(points, meanings, strict=True) if len(p.at) > 2}
    if not curves:
        return points
    kept = zip(points, meanings, strict=True)
    return [p for p, m in kept if rows[p.file] > 1 or p.clock in ("step", "sample") or not (_told(m, curves) or _stray(p, m))]


def _stray(p: Points, meaning: Meaning) -> bool:
    """One number in a file of one row, without a place and of no data: `"r": 8` beside a log is no return."""
    return p.clock == "row" and len(p.at) == 1 and meaning.split not in ("val", "test")


def _told(meaning: Meaning, curves: set[tuple[str | None, Split | None]]) -> bool:
    machine = meaning.quantity in ("duration", "throughput", "memory", "total_flos", None)
    return machine or (meaning.quantity, meaning.split) in curves


def _in_time_order(points: list[Points]) -> list[Points]:
    """Files in the order they were written: by wall time where it is logged, else by natural name."""

    def first_second(p: Points) -> float:
        track = p.clocks.get("second")
        return float(track[0]) if track is not None and len(track) and track[0] > 1e8 else float("inf")

    began: dict[str, float] = defaultdict(lambda: float("inf"))
    for p in points:
        began[p.file] = min(began[p.file], first_second(p))
    return sorted(points, key=lambda p: (began[p.file], _natural(p.file)))


def _natural(text: str) -> list[tuple[int, int, str]]:
    out: list[tuple[int, int, str]] = []
    digits = ""
    for char in text + "\0":
        if char.isdecimal():
            digits += char
            continue
        if digits:
            out.append((0, int(digits[:18]), ""))
            digits = ""
        out.append((1, 0, char))
    return out


def _chunks(p: Points, launches: dict[str, Any]) -> list[_Chunk]:
    lines, base = launches[p.file]
    launch = base + np.searchsorted(lines, p.lines, side="right") - 1
    order = np.argsort(launch, kind="stable")
    numbers, begins = np.unique(launch[order], return_index=True)
    out = []
    for number, keep in zip(numbers.tolist(), np.split(order, begins[1:]), strict=True):
        if len(keep) > 1 and bool(np.any(np.diff(p.at[keep]) < 0)):
            keep = keep[np.argsort(p.at[keep], kind="stable")]  # lines out of order within a launch
        out.append(
            _Chunk(
                int(number),
                p.at[keep],
                p.values[keep],
                p.lines[keep],
                p.file,
                {c: t[keep] for c, t in p.clocks.items()},
            )
        )
    return out


def _weave(columns: list[list[_Chunk]], segments: tuple[Segment, ...]) -> tuple[list[_Chunk], list[_Chunk], list[Note]]:
    """Live chunks in order, overwritten chunks, and notes on what was told twice."""
    chunks = [chunk for column in columns for chunk in column]
    live: list[_Chunk] = []  # by their first position
    reach: list[float] = []  # how far the live chunks up to each go, so that only the later ones are looked at
    dead: list[_Chunk] = []
    notes: list[Note] = []
    displaced = _displaced_launches(segments)
    for chunk in chunks:
        chunk, repeated = _without_repeats(chunk)
        if repeated:
            notes.append(
                Note(
                    f"{repeated} rows stand twice with equal values; kept once",
                    chunk.file,
                    int(chunk.lines[0]),
                    "repaired",
                )
            )
        if chunk.launch in displaced:
            dead.append(chunk)
            continue
        start = float(chunk.at[0])
        first = bisect_left(reach, start)
        kept: list[_Chunk] = []
        copy = False
        for old in live[first:]:
            overlap = old.at >= start
            if not np.any(overlap):
                kept.append(old)
                continue
            if old.file != chunk.file and _tells_the_same(old, chunk):
                copy = True
                kept.append(old)
                continue
            if not np.all(overlap):
                kept.append(old.cut(~overlap))
            dead.append(old.cut(overlap))
        if copy:
            known = np.concatenate([old.at for old in kept])
            new = ~np.isin(chunk.at, known)
            if np.any(new):
                kept.append(chunk.cut(new))
        else:
            kept.append(chunk)
        kept.sort(key=lambda c: float(c.at[0]))
        live[first:], reach[first:] = kept, []
        for old in kept:
            reach.append(max(reach[-1] if reach else -np.inf, float(np.fmax.reduce(old.at))))
    return live, dead, notes


def _displaced_launches(segments: tuple[Segment, ...]) -> set[int]:
    """Where a run was begun again from the start, the launch that went furthest is the run (the last, if
    several went as far); the others are displaced."""
    out: set[int] = set()
    for file in dict.fromkeys(s.file for s in segments if s.kind == "relaunch"):
        families: list[list[Segment]] = []
        for segment in segments:
            if segment.file != file:
                continue
            if segment.kind == "relaunch" or not families:
                families.append([segment])
            else:
                families[-1].append(segment)
        reach = [max(s.end for s in family) for family in families]
        chosen = max(range(len(families)), key=lambda i: (reach[i], i))
        out |= {s.index for i, family in enumerate(families) if i != chosen for s in family}
    return out


def _without_repeats(chunk: _Chunk) -> tuple[_Chunk, int]:
    still = chunk.at[1:] == chunk.at[:-1]
    if not still.any():
        return chunk, 0
    same = np.zeros(len(chunk.at), dtype=bool)
    same[1:] = still & same_values(chunk.values[1:], chunk.values[:-1])
    return (chunk.cut(~same), int(same.sum())) if np.any(same) else (chunk, 0)


def _tells_the_same(a: _Chunk, b: _Chunk) -> bool:
    """Two files tell one launch: their values agree at nearly all positions that both have."""
    common, ia, ib = np.intersect1d(a.at, b.at, return_indices=True)
    return len(common) > 0 and float(np.mean(same_values(a.values[ia], b.values[ib]))) >= 0.9


def _last_of_bars(p: Points) -> Points:
    """A bar that redraws its line with one position for all of it (the epoch) shows a mean that is still being taken:
    what it ends with is the row."""
    goes_on = repeated(p.lines, p.at)
    if p.rank is not None or len(p.lines) < REDRAWN or float(np.mean(goes_on)) < 1 - 1 / REDRAWN:
        return p
    last = np.append(~goes_on, True)
    clocks = {name: track[last].copy() for name, track in p.clocks.items()}
    return replace(p, values=p.values[last].copy(), at=p.at[last].copy(), lines=p.lines[last].copy(), clocks=clocks)


def _grouped(points: list[Points]) -> dict[str, tuple[list[Points], Meaning]]:
    """Points by canonical name. Names that collide keep the spelling of the file to tell them apart."""
    wanted: dict[str, dict[tuple[str, str | None, str], list[Points]]] = defaultdict(lambda: defaultdict(list))
    meanings: dict[tuple[str, str | None], Meaning] = {}
    points = [_last_of_bars(p) for p in points]
    for p, meaning in zip(points, meanings_of(points), strict=True):
        meanings[(p.name, p.split)] = meaning
        p = as_evaluations(p) if meaning.split in ("val", "test") else p
        window: str = p.window or meaning.window or ""
        wanted[canonical(meaning, p.name, p.about)][(p.name, p.split, window)].append(p)
    out: dict[str, tuple[list[Points], Meaning]] = {}
    for label, spellings in wanted.items():
        spellings = _one_story(spellings)
        # "train : [loss = 1.2], test : [loss = 1.3]": a name that stands twice on a line is no single story.
        single = [key for key, members in spellings.items() if not any(_twice_on_a_line(p) for p in members)]
        lead = _plainest(_fuller(single or list(spellings), spellings))
        for spelling, members in spellings.items():
            raw, split, average = spelling
            own = label
            if spelling != lead:
                own = (
                    f"{label}@{average}"
                    if average and sum(s[2] == average for s in spellings) == 1
                    else f"{label}.{raw}"
                )
            while own in out:
                own += "'"
            clocks = {p.clock for p in members}
            if len(clocks) > 1:  # one name on two clocks: keep the finer story, in its own series each
                for clock in sorted(clocks):
                    same = [p for p in members if p.clock == clock]
                    out[own if clock == members[0].clock else f"{own}@{clock}"] = (
                        same,
                        meanings[(raw, split)],
                    )
            else:
                out[own] = (members, meanings[(raw, split)])
    return out


def _twice_on_a_line(p: Points) -> bool:
    """Twice at one position of one line: a progress bar writes all its rows over one line, each at a position of its own."""
    again = repeated(p.lines, p.at)
    return bool(len(again)) and float(np.mean(again)) > 0.1 and p.rank is None


def _one_story(spellings: dict[tuple[str, str | None, str], list[Points]]) -> dict[Any, list[Points]]:
    """Two spellings of one quantity in two files (TensorBoard's train/loss, the state file's loss) are one
    series when no file holds both."""
    if len(spellings) < 2:
        return dict(spellings)
    files = [{p.file for p in members} for members in spellings.values()]
    seen: set[str] = set()
    for group in files:
        if seen & group:
            return dict(spellings)
        seen |= group
    windows = {key[2] for key in spellings if key[2]}
    if len(windows) > 1 or _disagree(list(spellings.values())):
        return dict(spellings)
    lead = max(spellings, key=lambda key: sum(len(p.at) for p in spellings[key]))
    return {lead: [p for key in [lead, *(k for k in spellings if k != lead)] for p in spellings[key]]}


def _disagree(stories: list[list[Points]]) -> bool:
    """A last value and a mean, told side by side at the same steps, are two series and not a run begun twice."""
    for i, mine in enumerate(stories):
        for theirs in stories[i + 1 :]:
            for p, q in itertools.product(mine, theirs):
                _, a, b = np.intersect1d(p.at, q.at, return_indices=True)
                if p.clock == q.clock and len(a) >= 3 and float(np.mean(same_values(p.values[a], q.values[b]))) < 0.5:
                    return True
    return False


def _fuller(keys: list[Any], spellings: dict[Any, list[Points]]) -> list[Any]:
    """The spellings without remarks: "Val loss: 0.31" at the end of a training is no curve beside its val_loss."""
    rows = {key: sum(len(p.at) for p in spellings[key]) for key in keys}
    return [key for key in keys if rows[key] > REMARKS or FEW * rows[key] >= max(rows.values())]


def _plainest(keys: list[tuple[str, str | None, str]]) -> tuple[str, str | None, str]:
    order = {"": 0, "window": 0, "eval": 0, "epoch": 1, "batch": 2, "running": 3}
    return min(keys, key=lambda key: (order.get(key[2], 1), len(key[0])))


def _series(label: str, first: Points, meaning: Meaning, chunks: list[_Chunk]) -> Series:
    files = tuple(dict.fromkeys(chunk.file for chunk in chunks))
    clocks = {}
    for name in dict.fromkeys(name for chunk in chunks for name in chunk.clocks):
        clocks[name] = np.concatenate([c.clocks.get(name, np.full(len(c.at), np.nan)) for c in chunks])
    values = np.concatenate([c.values for c in chunks]) if chunks else np.empty(0)
    unit = meaning.unit
    if unit == "share":  # a share is logged as a fraction or in percent; the values tell which
        finite = values[np.isfinite(values)]
        unit = "%" if len(finite) and float(np.abs(finite).max()) > 1.5 else "fraction"
    return Series(
        name=label,
        raw=first.name,
        quantity=meaning.quantity,
        split=meaning.split,
        part=meaning.part or (first.about if meaning.quantity not in (None, "loss") else meaning.part),
        unit=unit,
        better=meaning.better,
        clock=first.clock,
        at=np.concatenate([c.at for c in chunks]) if chunks else np.empty(0),
        values=values,
        files=files,
        file_of=np.concatenate([np.full(len(c.at), files.index(c.file), dtype=np.int64) for c in chunks])
        if chunks
        else np.empty(0, dtype=np.int64),
        lines=np.concatenate([c.lines for c in chunks]) if chunks else np.empty(0, dtype=np.int64),
        clocks=clocks,
        window=first.window or meaning.window,
        rank=first.rank,
        inferred=meaning.inferred,
    )


def _in_order(series: Series) -> Series:
    return series.where(np.argsort(series.at, kind="stable"))


def _without_echoes(series: dict[str, Series]) -> dict[str, Series]:
    """A second log may repeat a series without saying where in the run it stands: the placed one tells it all."""
    out = dict(series)
    for label, s in series.items():
        if s.clock != "row":
            continue
        placed = [o for o in series.values() if o.clock != "row" and o.quantity == s.quantity and len(o) == len(s)]
        if s.quantity and any(bool(np.all(same_values(o.values, s.values))) for o in placed):
            del out[label]
    return out


def _dead_from(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    out = []
    later: dict[str, float] = {}  # the lowest start of the launches after, by clock
    for segment in reversed(segments):
        lowest = later.get(segment.clock, np.inf)
        out.append(replace(segment, dead_from=lowest) if lowest <= segment.end else segment)
        later[segment.clock] = min(lowest, segment.start)
    return tuple(reversed(out))
