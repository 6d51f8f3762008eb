"""Which files of one folder tell one run.

Files of one folder are taken as one run unless they contradict each other:

- **Copies.** Where two files hold the same series, its values agree at the steps that both have (to the digits printed):
  one run, told twice.
- **Launches.** The values differ, and one file begins later than the other, or their names are the same but for a time stamp
  or the number of a rotated log: one run, resumed or begun again. All event files of a TensorBoard folder are one run, as
  TensorBoard has it.
- **Parts.** The names are the same but for "train", "val", "test": one run, and the file name says which data a number
  is of. Files that share no series (a loss here, a rate there) are parts of one run, too, and so are the folders of event
  files that Keras (`train/`, `validation/`), Estimators (`eval/`) and torch's `add_scalars` make.
- **Environments.** `0.monitor.csv`, `1.monitor.csv` of the same hours and environment: one run, its episodes in the order in
  which they ended.
- **Otherwise** (the same series from the same start, with other values: `seed1.csv` and `seed2.csv`, `resnet.log` and
  `vgg.log`) they are separate runs. A file that shares nothing with any of them belongs to the one whose name it has, else it
  is a run of its own. In two formats only scores of held-out data are compared, as a training loss may be a mean in one
  and a single batch in the other, and training losses where one file ends far before the other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from wheeltapper.reading.record import ClockName, Floats, Note, Points, Reading
from wheeltapper.run.copies import tell_one_training
from wheeltapper.run.launches import LEAST, spacing, told_alike
from wheeltapper.run.model import same_values
from wheeltapper.run.names import canonical, meaning_of
from wheeltapper.run.numbered import rows_as_one

Verdict = Literal["same", "other"]

AGREE = 0.9  # of the common values, as in merge: a few rows may have been written while they were still changing
HEAD = 16  # first rows that are held against each other before all
MOST_COMPARED = 400  # files of a folder compared pair by pair; beyond, each is compared with the first of each run
MOST_MIXED = 100  # files of which those of two formats are compared, which is dear; beyond, names alone join them
# One file goes on for half as long again: two writers of one process end together, but for what is in a buffer.
FAR = 1.5

_EVENTS = re.compile(r"events\.out\.tfevents\.\d+.*")
_STAMP = re.compile(r"\d{8}[_-]?\d{4,6}|\d{4}-\d\d-\d\d([T _-]\d\d[-_:h]?\d\d([-_:m]?\d\d)?)?|(?<=\.log)\.\d{1,3}$")
_PART = re.compile(r"(?<![a-z])(train(?:ing)?|learn|val(?:id|idation)?|test(?:ing)?|eval(?:uation)?|dev)(?![a-z])")
_PARTS = {"tr": "train", "le": "train", "va": "val", "te": "test", "ev": "val", "de": "val"}
_MACHINE = {"duration", "throughput", "memory", "eta"}
_MONITOR = re.compile(r"(?:^|.*\D)(\d+)(?:\.\d+)?\.monitor\.csv$")


def runs_apart(readings: Sequence[Reading]) -> list[list[Reading]]:
    """The readings of one folder, a list for each run; what measures nothing (settings, checkpoints) goes with each."""
    measured = _environments(_parts(rows_as_one([r for r in readings if r.points and r.key is None])))
    rest = [r for r in readings if not (r.points and r.key is None)]
    groups = _groups(measured)
    return [[*group, *rest] for group in groups] if len(groups) > 1 else [[*measured, *rest]]


def contradict(mine: Sequence[Reading], theirs: Sequence[Reading]) -> bool:
    """Do files of two folders tell of two runs?"""
    ours = [_File.of(r) for r in mine if r.points]
    others = [_File.of(r) for r in theirs if r.points]
    return any(_verdict(a, b, mixed=True) == "other" for a in ours for b in others)


def _groups(measured: list[Reading]) -> list[list[Reading]]:
    files = [_File.of(reading) for reading in measured]
    groups: list[list[int]] = []
    of: dict[int, int] = {}
    against: set[tuple[int, int]] = set()
    for i, file in enumerate(files):
        linked: int | None = None
        for j in _to_compare(i, groups):
            verdict = _verdict(files[j], file, mixed=len(files) <= MOST_MIXED)
            if verdict == "same" and linked is None:
                linked = of[j]
            if verdict == "other":
                against.add((of[j], i))
        if linked is None:
            linked = len(groups)
            groups.append([])
        groups[linked].append(i)
        of[i] = linked
    at_odds = {g for pair in ((g, of[i]) for g, i in against) if pair[0] != pair[1] for g in pair}
    if not at_odds:
        return [measured]
    for g, members in enumerate(groups):  # what is at odds with none: with the run whose name it has, else by itself
        if g not in at_odds and (home := _namesake(measured, members, groups, at_odds)) is not None:
            groups[home] += groups[g]
            groups[g] = []
    return [[measured[i] for i in sorted(members)] for members in groups if members]


def _to_compare(i: int, groups: list[list[int]]) -> Iterator[int]:
    if i < MOST_COMPARED:
        yield from range(i)
        return
    yield from (members[0] for members in groups[:MOST_COMPARED])


def _namesake(measured: list[Reading], members: list[int], groups: list[list[int]], among: set[int]) -> int | None:
    mine = {_stem(measured[i].file) for i in members}
    found = [g for g in among if mine & {_stem(measured[i].file) for i in groups[g]}]
    return found[0] if len(found) == 1 else None


def _stem(file: str) -> str:
    return _PART.sub("", Path(file).name.lower().split(".")[0]).strip("_- ")


def _plain_name(file: str) -> str:
    """The name of a file without its time stamp."""
    return _STAMP.sub("*", _EVENTS.sub("*", Path(file).name))


@dataclass(frozen=True)
class _File:
    """A reading and what is asked of it for every pair of files."""

    reading: Reading
    plain: str
    woven: bool
    curves: dict[tuple[Any, ...], Points]
    heads: dict[tuple[Any, ...], tuple[list[float], list[float | None]]]  # the first rows of each: positions, values

    @staticmethod
    def of(reading: Reading) -> _File:
        curves = {_key(p): p for p in reading.points if len(p.at) >= LEAST and _is_curve(p)}
        heads = {
            key: (p.at[:HEAD].tolist(), [None if v != v else v for v in p.values[:HEAD].tolist()])
            for key, p in curves.items()
        }
        return _File(reading, _plain_name(reading.file), all(p.woven for p in reading.points), curves, heads)


def _verdict(a: _File, b: _File, *, mixed: bool) -> Verdict | None:
    """Do two files tell the same run? None: they share nothing that could tell."""
    if a.reading.file == b.reading.file:
        return None
    if "*" in a.plain and a.plain == b.plain:
        return "same"
    if a.reading.format == b.reading.format:
        return _alike(a, b)
    return _two_formats(a.reading, b.reading) if mixed else None


def _alike(a: _File, b: _File) -> Verdict | None:
    """Two files of one format: the same names are the same series."""
    if a.woven and b.woven:
        return "same"
    shared = [key for key in b.curves if key in a.curves]
    for key in shared:  # cheap, for folders of a thousand seeds: the same first rows, and no value of them alike
        (at, values), (other, others) = a.heads[key], b.heads[key]
        if at == other and not any(x == y for x, y in zip(values, others, strict=True)):
            return "other"
    found: Verdict | None = None
    for key in shared:
        p, q = a.curves[key], b.curves[key]
        told = _agreement(p, q)
        if told is not None and told >= AGREE:
            found = "same" if found is None and _moves(q.values) else found
            continue
        if (told is None and p.at[-1] < q.at[0]) or q.at[-1] < p.at[0]:
            found = found or "same"  # one goes on where the other ended
            continue
        usual = max(spacing(p.at), spacing(q.at))
        if abs(float(p.at[0]) - float(q.at[0])) > 1.5 * usual:
            found = found or "same"  # a later launch
            continue
        return "other"
    return found


def _key(p: Points) -> tuple[Any, ...]:
    return (p.name, p.split, p.clock, p.about, p.rank)


def _is_curve(p: Points) -> bool:
    return meaning_of(p.name, p.split, p.unit).quantity not in _MACHINE


def _moves(values: Floats) -> bool:
    return bool(np.any(values[1:] != values[:-1]))


def _agreement(p: Points, q: Points) -> float | None:
    """The share of common positions at which the values are equal; None where fewer than LEAST are common."""
    _, i, j = np.intersect1d(p.at, q.at, return_indices=True)
    return float(np.mean(same_values(p.values[i], q.values[j]))) if len(i) >= LEAST else None


def _two_formats(a: Reading, b: Reading) -> Verdict | None:
    """Two formats may count from 0 or from 1, print few digits, and take other means: only what was evaluated is the
    same number in both."""
    if tell_one_training(results_of(a), results_of(b)):
        return "same"
    mine = {(label, p.clock): p for label, p in _measures(a)}
    found: Verdict | None = None
    for label, q in _measures(b):
        p = mine.get((label, q.clock))
        if p is None or min(len(p.at), len(q.at)) < LEAST or not _moves(q.values):
            continue
        told = max(
            (told_alike(p, q, shift) for shift in (0, -1, 1)), key=lambda share: -1.0 if share is None else share
        )
        if told is not None and told >= 0.5:  # a log may print the score of the average beside that of the weights
            found = "same"
        elif told is not None and told < 1 - AGREE and found is None:
            reach = float(p.at[-1] - p.at[0]), float(q.at[-1] - q.at[0])
            together = abs(float(p.at[0]) - float(q.at[0])) <= 1.5 * max(spacing(p.at), spacing(q.at))
            if together and (label.startswith(("val/", "test/")) or max(reach) > FAR * min(reach) > 0):
                found = "other"
    return found


def _measures(reading: Reading) -> Iterator[tuple[str, Points]]:
    """The whole losses and scores of a reading, by what they mean; none where two go by one name."""
    found: dict[str, list[Points]] = defaultdict(list)
    for p in reading.points:
        meaning = meaning_of(p.name, p.split, p.unit)
        if not meaning.quantity or not meaning.split or meaning.better not in ("up", "down") or not _is_curve(p):
            continue
        if meaning.split != "train" or (meaning.quantity == "loss" and not meaning.part):
            found[canonical(meaning, p.name, p.about)].append(p)
    yield from ((label, members[0]) for label, members in found.items() if len(members) == 1)


def results_of(reading: Reading) -> Iterator[tuple[str, Points]]:
    """Every loss and score of a reading, by what it means."""
    for p in reading.points:
        meaning = meaning_of(p.name, p.split, p.unit)
        if meaning.quantity and meaning.better in ("up", "down") and len(p.values) >= LEAST:
            yield canonical(replace(meaning, part=None), p.name, None), p


def _parts(readings: list[Reading]) -> list[Reading]:
    """train.log and val.log: what stands in them without saying of which data, is of those the name says."""
    names: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, reading in enumerate(readings):
        name = Path(reading.file).name.lower()
        if found := _PART.findall(name):
            names[_PART.sub("*", name)][_PARTS[found[0][:2]]].append(i)
    out = list(readings)
    for by_split in names.values():
        if len(by_split) < 2:
            continue
        for split, members in by_split.items():
            for i in members:
                out[i] = of_split(out[i], split)
    return out


def of_split(reading: Reading, split: str) -> Reading:
    """A reading as that of `split`, unless it tells itself of which data its numbers are. A format that takes a plain
    name for one of training does not tell."""
    if any(p.split not in (None, "train") for p in reading.points):
        return reading
    return replace(reading, points=tuple(_of_split(p, split) for p in reading.points))


def _of_split(p: Points, split: str) -> Points:
    if _PART.search(p.name.lower().replace("_", " ")):
        return p
    known = meaning_of(p.name, split, p.unit).quantity
    return replace(p, split=split, name=p.name if known else f"{split}/{p.name}")


def _environments(readings: list[Reading]) -> list[Reading]:
    """Monitors of one vectorised environment: the rows of all in the order of their wall time, counted together."""
    families: dict[Any, list[int]] = defaultdict(list)
    for i, reading in enumerate(readings):
        if _MONITOR.match(Path(reading.file).name):
            families[(reading.format, *(f.value for f in reading.facts if f.name == "env_id"))].append(i)
    out = list(readings)
    for members in families.values():
        began = [_began(readings[i]) for i in members]
        starts = [b for b in began if b is not None]
        ends = [b + _lasted(readings[i]) for i, b in zip(members, starts, strict=False)]
        if len(members) < 2 or len(starts) < len(members) or max(starts) > min(ends):
            continue
        for i, woven in zip(members, _woven([readings[i] for i in members], starts), strict=True):
            out[i] = woven
    return out


def _began(reading: Reading) -> float | None:
    found = next((f.value for f in reading.facts if f.name == "t_start"), None)
    return float(found) if isinstance(found, (int, float)) and np.isfinite(found) and found > 0 else None


def _lasted(reading: Reading) -> float:
    """Seconds from the start of a monitor to its last episode; less than none where a column does not tell them."""
    tracks = [p.clocks["second"] for p in reading.points if {"second", "step"} <= set(p.clocks)]
    if len(tracks) < len(reading.points) or not all(np.all(np.isfinite(t)) for t in tracks):
        return -np.inf
    return max(float(t[-1]) for t in tracks)


def _woven(readings: list[Reading], starts: list[float]) -> list[Reading]:
    fullest = [max(r.points, key=lambda p: len(p.at)) for r in readings]
    wall = np.concatenate([p.clocks["second"] + start for p, start in zip(fullest, starts, strict=True)])
    length = np.concatenate([np.diff(p.clocks["step"], prepend=0.0) for p in fullest])
    order = np.argsort(wall, kind="stable")
    row, step = np.empty(len(order)), np.empty(len(order))
    row[order], step[order] = np.arange(len(order), dtype=np.float64), np.cumsum(length[order])
    out, begin = [], 0
    for reading, lead, start in zip(readings, fullest, starts, strict=True):
        rows, steps = row[begin : begin + len(lead.at)], step[begin : begin + len(lead.at)]
        begin += len(lead.at)
        points = []
        for p in reading.points:
            own = np.minimum(np.searchsorted(lead.at, p.at), len(lead.at) - 1)
            clocks: dict[ClockName, Floats] = {"step": steps[own], "second": p.clocks["second"] + start - min(starts)}
            points.append(replace(p, at=rows[own], clocks=clocks, woven=True))
        note = Note(
            f"one of {len(readings)} environments that log here; their episodes are counted together", reading.file
        )
        out.append(replace(reading, points=tuple(points), notes=(*reading.notes, note)))
    return out
