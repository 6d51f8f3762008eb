"""Paths -> a fleet: every run in them as a row. What the index knows is not read again; the rest is judged in parallel."""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wheeltapper.api import Progress, Where
from wheeltapper.errors import InputError, NothingToRead
from wheeltapper.fleet.content import content_of, judge_key, stamp_of
from wheeltapper.fleet.index import Answer, Index
from wheeltapper.fleet.pool import cores, run_tasks
from wheeltapper.fleet.row import Row
from wheeltapper.fleet.units import Unit, units_of
from wheeltapper.fleet.worker import Outcome, Task, task_of
from wheeltapper.judge.diagnose import LINES
from wheeltapper.judge.model import Lines
from wheeltapper.places import local_path
from wheeltapper.report.text import clean

BATCH = 200  # outcomes written to the index at once
Engine = Callable[[Sequence[Task], int], Iterator[Outcome]]


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a fleet: its row, where it lies, and how it is called here."""

    row: Row
    unit: Unit
    path: str
    number: int  # of several runs at one path
    label: str
    id: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a scan found."""

    members: tuple[Member, ...]
    problems: tuple[tuple[str, str], ...] = ()  # (path, why it could not be judged)
    empty: int = 0  # units that hold no record
    read: int = 0  # units that were read; the others were known
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Work:
    """A scan under way."""

    rows: dict[Path, list[Row]] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    todo: dict[str, tuple[Unit, str, str]] = field(default_factory=dict)  # by path: unit, stamp, content
    fresh: dict[str, Answer] = field(default_factory=dict)


def scan(
    paths: Iterable[Where],
    *,
    lines: Lines = LINES,
    workers: int | None = None,
    index_file: Path | None = None,
    progress: Progress | None = None,
    engine: Engine = run_tasks,
) -> Fleet:
    """Every run at these paths. A path that is not there is an InputError where it is the only one, else a problem."""
    began = time.perf_counter()
    work = _Work()
    units = _all_units(list(paths), work)
    with Index(judge_key(lines), index_file) as index:
        _take_known(units, index, work)
        read = len(work.todo)
        _judge_rest(index, work, lines, cores() if workers is None else workers, progress, engine)
        notes = (index.problem,) if index.problem else ()
    members = _members(units, work.rows)
    empty = sum(not work.rows.get(unit.path) for unit in units)
    return Fleet(members, tuple(work.problems), empty, read, time.perf_counter() - began, notes)


def _all_units(paths: list[Where], work: _Work) -> list[Unit]:
    found: dict[Path, Unit] = {}
    for path in paths:
        try:
            for unit in units_of(local_path(path)):
                if all(_speakable(file) for file in (unit.path, *unit.files)):
                    found[unit.path if unit.path not in found else unit.files[0]] = unit
                else:
                    work.problems.append((clean(unit.path), "a name in it is not valid UTF-8; rename it"))
        except InputError as error:
            if len(paths) == 1:
                raise
            work.problems.append((str(path), error.what))
    return list(found.values())


def _speakable(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _take_known(units: list[Unit], index: Index, work: _Work) -> None:
    known = index.known(_key(unit) for unit in units)
    used = []
    for unit in units:
        try:
            stamp = stamp_of(unit)
            answer = known.get(_key(unit))
            if answer is not None and answer.stamp == stamp:
                work.rows[unit.path] = answer.rows
                used.append(answer)
                continue
            content = content_of(unit)
            rows = index.by_content(content)
        except OSError as error:
            work.problems.append((str(unit.path), f"it went away or cannot be read: {error.strerror}"))
            continue
        if rows is None:
            work.todo[_key(unit)] = (unit, stamp, content)
        else:
            work.rows[unit.path] = rows
            work.fresh[_key(unit)] = Answer(stamp, content, rows)
    index.used(used)


def _key(unit: Unit) -> str:
    """Where a unit is remembered: the files of a folder that was cut are another unit than the folder."""
    return str(unit.path) if unit.top is None else f"{unit.path}\n{unit.top}"


def _judge_rest(
    index: Index, work: _Work, lines: Lines, workers: int, progress: Progress | None, engine: Engine
) -> None:
    units = {str(unit.path): key for key, (unit, _, _) in work.todo.items()}
    tasks = [task_of(unit, lines) for unit, _, _ in work.todo.values()]
    for done, outcome in enumerate(engine(tasks, workers)):
        if progress:
            progress(outcome.path, done + 1, len(tasks))
        key = units[outcome.path]
        unit, stamp, content = work.todo[key]
        if outcome.problem:
            work.problems.append((outcome.path, outcome.problem))
            continue
        work.rows[unit.path] = outcome.rows
        if _unchanged(unit, stamp):
            work.fresh[key] = Answer(stamp, content, outcome.rows)
        if len(work.fresh) >= BATCH:
            index.keep(work.fresh)
            work.fresh.clear()
    index.keep(work.fresh)


def _unchanged(unit: Unit, stamp: str) -> bool:
    """Was it written to while it was read? Then what was read is shown, and not remembered."""
    try:
        return stamp_of(unit) == stamp
    except OSError:
        return False


def _members(units: list[Unit], rows: dict[Path, list[Row]]) -> tuple[Member, ...]:
    placed: list[tuple[Row, Unit, str, int]] = []
    counts: Counter[str] = Counter()
    for unit in units:
        folder = unit.path if unit.path.is_dir() else unit.path.parent
        for row in rows.get(unit.path, []):
            path = os.path.normpath(folder / row.place)
            placed.append((row, unit, path, counts[path]))
            counts[path] += 1
    names = Counter(row.name for row, _, _, _ in placed)
    top = os.path.commonpath([path for _, _, path, _ in placed]) if placed else ""
    return tuple(
        Member(row, unit, path, number, _label(row, path, top, names), ident(path, number))
        for row, unit, path, number in placed
    )


def ident(path: str, number: int) -> str:
    """A short name for links: the same run has the same at every scan."""
    return hashlib.blake2b(f"{path}\n{number}".encode(), digest_size=6).hexdigest()


def _label(row: Row, path: str, top: str, names: Counter[str]) -> str:
    """The name of a run; with its folder where several have the same."""
    if names[row.name] == 1:
        return row.name
    near = clean(os.path.relpath(path, top), 120)
    if near == ".":
        return row.name
    return near if near.endswith(row.name.rsplit("/", 1)[-1]) else f"{near}/{row.name}"


def some_runs(fleet: Fleet, paths: Sequence[Where]) -> Fleet:
    """The fleet, if there is a run in it. Raises where there is none."""
    if not fleet.members and not fleet.problems:
        given = ", ".join(str(path) for path in paths)
        raise NothingToRead(f"{given} holds no record of a run.", do="Point at the folder the trainings wrote to.")
    return fleet
