"""Which settings go with illness, and which with the score: a sweep as a whole.

Every setting that varies cuts the runs into groups: its values, or quarters of its range. How much of the outcome's ranks lies
between the groups is held against shuffles of the outcome among the runs. Many settings are looked at, so a p counts for all of
them together: the chance that the best-looking of them would look as good if none mattered (Westfall and Young 1993, min-p).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from wheeltapper.fleet.scan import Member
from wheeltapper.fleet.table import settings_in
from wheeltapper.reading.record import Floats
from wheeltapper.report.text import clean, num, plural

FEWEST_RUNS = 8  # of them a setting can show something at all
FEWEST_IN_GROUP = 2
MOST_VALUES = 6  # above that a number is cut into quarters; a name with more values tells them no more apart
MOST_RUNS = 2000  # shuffled; of a larger fleet so many, drawn once
SHUFFLES = 2000
HOLDS = 0.05  # chance of one false claim in the whole table
MOST_SHOWN = 8
IDLE = {"run.seed", "log.every", "data.workers", "name", "seed"}  # which differ between runs and are no choice

Matrix = np.ndarray[Any, np.dtype[np.float64]]
Cells = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Factor:
    """One setting as a partition of the runs; -1: the run does not set it."""

    names: tuple[str, ...]  # several, where they always change together
    cells: Cells
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """How a setting and the outcome go together."""

    setting: str
    share: float  # of the spread of the outcome's ranks that lies between its groups
    p_alone: float
    p_all: float
    words: str
    n: int

    @property
    def holds(self) -> bool:
        return self.p_all < HOLDS


@dataclass(frozen=True, slots=True)
class Sweep:
    headline: str
    illness: tuple[Link, ...]
    score: tuple[Link, ...]
    score_name: str
    looked: int  # settings that vary
    notes: tuple[str, ...]


def sweep_of(members: Sequence[Member], *, seed: int = 0) -> Sweep:
    """What a set of runs says about its settings."""
    random = np.random.default_rng(seed)
    drawn = len(members) > MOST_RUNS
    if drawn:
        members = [members[i] for i in sorted(random.choice(len(members), MOST_RUNS, replace=False))]
    factors = _factors(members)
    p_ill = np.array([member.row.p_ill for member in members])
    illness = _links(factors, p_ill, random, _ill_words(members)) if _varies(p_ill) else ()
    name, values = _scores(members)
    score = _links(factors, values, random, _score_words(values)) if name and _varies(values) else ()
    return Sweep(
        _headline(members, factors, illness, score, name), illness[:MOST_SHOWN], score[:MOST_SHOWN], name, len(factors),
        _notes(factors, drawn),
    )  # fmt: skip


def _varies(values: Floats) -> bool:
    good = values[np.isfinite(values)]
    return bool(good.size >= FEWEST_RUNS and np.ptp(good) > 0)


def common_score(members: Sequence[Member]) -> str:
    """The score that most runs are judged by."""
    counts = Counter(m.row.score_name for m in members if m.row.score is not None)
    return counts.most_common(1)[0][0] if counts else ""


def _scores(members: Sequence[Member]) -> tuple[str, Floats]:
    """The common score; NaN where a run has another."""
    name = common_score(members)
    held = [m.row.score if m.row.score_name == name and m.row.score is not None else np.nan for m in members]
    return name, np.array(held, dtype=np.float64)


def _factors(members: Sequence[Member]) -> list[Factor]:
    found: dict[bytes, Factor] = {}
    for name in settings_in(members):
        if name in IDLE or name.rsplit(".", 1)[-1] in IDLE:
            continue
        factor = _factor(name, [member.row.settings.get(name) for member in members])
        if factor is None:
            continue
        same = found.get(factor.cells.tobytes())
        found[factor.cells.tobytes()] = factor if same is None else Factor((*same.names, name), same.cells, same.labels)
    return list(found.values())


def _factor(name: str, values: list[Any]) -> Factor | None:
    known = [v for v in values if v is not None]
    distinct = set(known)
    if len(known) < FEWEST_RUNS or len(distinct) < 2:
        return None
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)
    if numeric and len(distinct) > MOST_VALUES:
        cells, labels = _quarters(values)
    elif len(distinct) > MOST_VALUES:
        return None
    else:
        order = sorted(distinct, key=lambda v: (isinstance(v, str), v))
        cells = np.array([-1 if v is None else order.index(v) for v in values], dtype=np.int64)
        labels = tuple(_value_words(v) for v in order)
    cells = _without_small(cells)
    return Factor((name,), cells, labels) if len(set(cells[cells >= 0].tolist())) > 1 else None


def _without_small(cells: Cells) -> Cells:
    sizes = np.bincount(cells[cells >= 0])
    return np.where(np.isin(cells, np.flatnonzero(sizes < FEWEST_IN_GROUP)), -1, cells)


def _quarters(values: list[Any]) -> tuple[Cells, tuple[str, ...]]:
    numbers = np.array([np.nan if v is None else float(v) for v in values])
    cuts = np.unique(np.quantile(numbers[np.isfinite(numbers)], (0.25, 0.5, 0.75)))
    cells = np.where(np.isfinite(numbers), np.searchsorted(cuts, numbers, side="left"), -1).astype(np.int64)
    inner = [f"{num(a)} to {num(b)}" for a, b in pairwise(cuts)]
    return cells, (f"up to {num(cuts[0])}", *inner, f"above {num(cuts[-1])}")


def _value_words(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return num(value) if isinstance(value, int | float) else clean(value, 24)


def _links(factors: list[Factor], outcome: Floats, random: np.random.Generator, words: Any) -> tuple[Link, ...]:
    """Every factor against the outcome, the clearest first."""
    if not factors:
        return ()
    known = np.isfinite(outcome)
    ranks = np.zeros(len(outcome))
    ranks[known] = _ranks(outcome[known])
    cells = [_without_small(np.where(known, f.cells, -1)) for f in factors]
    usable = [i for i, c in enumerate(cells) if (c >= 0).sum() >= FEWEST_RUNS and len(set(c[c >= 0].tolist())) > 1]
    if not usable:
        return ()
    spots = np.flatnonzero(known)
    real = np.array([_between(cells[i], ranks[None, :])[0] for i in usable])
    shuffled = np.empty((SHUFFLES, len(usable)))
    for start in range(0, SHUFFLES, 100):
        block = np.tile(ranks, (100, 1))
        block[:, spots] = random.permuted(block[:, spots], axis=1)
        for column, i in enumerate(usable):
            shuffled[start : start + 100, column] = _between(cells[i], block)
    alone = (1 + (shuffled >= real - 1e-12).sum(axis=0)) / (1 + SHUFFLES)
    # Of each shuffle, how good its best-looking setting looked among the shuffles.
    order = np.argsort(np.argsort(-shuffled, axis=0), axis=0)
    best = ((1 + order) / SHUFFLES).min(axis=1)
    together = [(1 + int((best <= p + 1e-12).sum())) / (1 + SHUFFLES) for p in alone]
    found = [
        Link(" + ".join(factors[i].names), float(real[k]), float(alone[k]), float(max(together[k], alone[k])),
             words(factors[i], cells[i]), int((cells[i] >= 0).sum()))
        for k, i in enumerate(usable)
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda link: (link.p_all, -link.share)))


def _ranks(values: Floats) -> Floats:
    """Ranks with ties shared."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    shared: Floats = middle[inverse]
    return shared


def _between(cells: Cells, outcomes: Matrix) -> Floats:
    """The share of the spread that lies between the cells, of each row of outcomes."""
    inside = cells >= 0
    values, where = outcomes[:, inside], cells[inside]
    values = values - values.mean(axis=1, keepdims=True)
    marks = np.eye(int(where.max()) + 1)[where]
    sizes = np.maximum(marks.sum(axis=0), 1)
    total = (values**2).sum(axis=1)
    between: Floats = ((values @ marks) ** 2 / sizes).sum(axis=1) / np.maximum(total, 1e-12)
    return between


def _ill_words(members: Sequence[Member]) -> Any:
    ill = np.array([member.row.verdict == "ill" for member in members])

    def words(factor: Factor, cells: Cells) -> str:
        parts = []
        for k, label in enumerate(factor.labels):
            inside = cells == k
            if inside.any():
                parts.append(f"{label}: {int(ill[inside].sum())} of {int(inside.sum())} ill")
        return " · ".join(parts)

    return words


def _score_words(values: Floats) -> Any:
    def words(factor: Factor, cells: Cells) -> str:
        parts = []
        for k, label in enumerate(factor.labels):
            inside = cells == k
            if inside.any():
                parts.append(f"{label}: median {num(float(np.median(values[inside])))} ({int(inside.sum())})")
        return " · ".join(parts)

    return words


def _headline(
    members: Sequence[Member], factors: list[Factor], illness: tuple[Link, ...], score: tuple[Link, ...], name: str
) -> str:
    runs = plural(len(members), "run")
    if not factors:
        return f"{runs}: no setting varies in enough of them to say anything."
    ill = [link.setting for link in illness if link.holds]
    good = [link.setting for link in score if link.holds]
    if not ill and not good:
        return f"{runs}: no setting goes with illness or with the score beyond what chance gives {len(factors)} settings."
    parts = [f"illness goes with {_listed(ill)}"] if ill else []
    parts += [f"{name} goes with {_listed(good)}"] if good else []
    return f"{runs}: {'; '.join(parts)}."


def _listed(names: list[str]) -> str:
    return ", ".join(clean(name, 60) for name in names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _notes(factors: list[Factor], drawn: bool) -> tuple[str, ...]:
    notes = []
    if factors:
        notes.append(
            f"{plural(len(factors), 'setting')} that vary were looked at. p is for all of them together: the chance that the "
            f"best-looking one would look as good if none mattered ({SHUFFLES:,} shuffles)."
        )
        notes.append("What goes with illness need not cause it: `wheeltapper trial` decides.")
    joint = [" + ".join(factor.names) for factor in factors if len(factor.names) > 1]
    if joint:
        notes.append(f"Always changed together, so not told apart: {_listed(joint)}.")
    if drawn:
        notes.append(f"{MOST_RUNS:,} of the runs, drawn at random once, were compared.")
    return tuple(notes)
