"""Folders that tell of one training: its console above, its trackers and checkpoints below.

A trainer prints to a file in the folder where it was started and writes its state, its events and its tables to folders
further down. They are one run where they hold the same losses or scores, or where there is one folder with numbers below
and nothing in it speaks against it. Folders that hold other values are other runs.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from wheeltapper.reading.record import Points, Reading
from wheeltapper.run.apart import contradict, results_of
from wheeltapper.run.copies import tell_one_training

MOST_FOLDERS = 80  # compared pair by pair; a sweep of more has its runs apart
# Where a tracker writes for the run of the folder above.
TRACKERS = {
    "wandb",
    "runs",
    "mlruns",
    "lightning_logs",
    "tb_logs",
    "tensorboard",
    "tb",
    "logs",
    "log",
    "events",
    "csv_logs",
}

Groups = dict[Path, list[Reading]]


def joined(groups: Groups) -> Groups:
    """The groups, with those of one training in one."""
    out = dict(groups)
    measured = [home for home, readings in out.items() if _measures(readings)]
    if not 1 < len(measured) <= MOST_FOLDERS:
        return out
    results = {home: [one for r in out[home] for one in results_of(r)] for home in measured}
    for above, below in _pairs(measured):
        if above in out and below in out and _same_by_values(above, below, out, results):
            _join(out, results, above, below)
    for above in sorted(measured, key=lambda home: -len(home.parts)):
        under = [home for home in measured if home in out and above in home.parents]
        if above in out and len(under) == 1 and _beside(above, under[0], out):
            _join(out, results, above, under[0])
    return out


def _pairs(measured: list[Path]) -> list[tuple[Path, Path]]:
    """Folders one of which may tell of the run of the other: those above each other first."""
    pairs = [tuple(sorted(pair, key=lambda home: (len(home.parts), str(home)))) for pair in combinations(measured, 2)]
    return sorted(((a, b) for a, b in pairs), key=lambda pair: pair[0] not in pair[1].parents)


def _same_by_values(above: Path, below: Path, groups: Groups, results: dict[Path, list[tuple[str, Points]]]) -> bool:
    if above not in below.parents and _formats(groups[above]) & _formats(groups[below]):
        return False  # two trackers of one training have two formats; two folders of one format are two runs
    return tell_one_training(results[above], results[below])


def _beside(above: Path, below: Path, groups: Groups) -> bool:
    """Two that nothing holds apart: other formats, and no value that both tell otherwise."""
    if _formats(groups[above]) & _formats(groups[below]) or not _near(above, below):
        return False
    return not contradict(groups[above], groups[below])


def _formats(readings: list[Reading]) -> set[str]:
    return {r.format for r in readings if r.points}


def _near(above: Path, below: Path) -> bool:
    """One folder below, or one that a tracker made: a run kept deep in an archive is another matter."""
    between = below.relative_to(above).parts
    return len(between) == 1 or any(part.lower() in TRACKERS for part in between) or len(between) <= 3


def _join(groups: Groups, results: dict[Path, list[tuple[str, Points]]], above: Path, below: Path) -> None:
    groups[above] = [*groups[above], *groups.pop(below)]
    results[above] = [*results[above], *results.pop(below)]


def _measures(readings: list[Reading]) -> bool:
    return any(r.points and r.key is None for r in readings)
