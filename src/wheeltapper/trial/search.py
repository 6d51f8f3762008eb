"""Which of many differences did it: delta debugging over settings, and bisection over commits, both with noisy runs.

A run of a training is a witness that errs: a sound setting may break now and then, and a broken one may hold. So no
single run decides. For settings, each question is asked of more seeds until Wald's test answers it (sequential.py);
for commits, every run moves a probability over all commits, and the next run is where it tells most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from wheeltapper.errors import InputError, RefusedEdit
from wheeltapper.finding import Edit
from wheeltapper.judge.compare import compare_runs
from wheeltapper.remedy.loads import edit_run
from wheeltapper.run.model import Run
from wheeltapper.trial.git import git
from wheeltapper.trial.protocol import holes

T = TypeVar("T")
HIT, FALSE = 0.9, 0.1  # chance that a run breaks with the fault, and without it: as sprt_broke takes them
SURE = 0.95  # posterior of the culprit at which a bisection ends (odds of 19)
# Differences that cannot change what is learned.
IDLE = ("log.", "checkpoint.", "eval.every", "eval.batch", "data.workers", "run.seed", "resume.", "world_size")


@dataclass(frozen=True, slots=True)
class Differences:
    """What turns the bad run into the good one, and what could not be made an edit."""

    edits: tuple[Edit, ...]
    left: tuple[tuple[str, str], ...]


def differences(bad: Run, good: Run, command: str) -> Differences:
    """The settings in which two runs differ, as edits of the bad run's files (TRL-11: by effective value)."""
    edits: list[Edit] = []
    left: list[tuple[str, str]] = []
    for one in compare_runs(bad, good).differences:
        if one.kind == "environment":
            left.append((one.name, "it is of the environment, not a setting"))
            continue
        if one.name.startswith(IDLE):
            left.append((one.name, "it cannot change what is learned"))
            continue
        edit = Edit(one.name, one.a, one.b)
        if edit.knob not in holes(command):
            try:
                edit_run(bad, [edit])
            except RefusedEdit as refused:
                left.append((one.name, refused.what))
                continue
        edits.append(edit)
    if not edits:
        told = "".join(f"\n  {name}: {why}" for name, why in left)
        raise InputError(
            f"no setting in which the two runs differ can be changed.{told}",
            do="If their code differs, look for the commit: --bisect GOOD..BAD.",
        )
    return Differences(tuple(edits), tuple(left))


def ddmin(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """The smallest part that still fails and of which nothing can be left out (Zeller & Hildebrandt 2002).

    `fails(items)` must be true and `fails(())` false; neither is asked.

    >>> ddmin("abcdefgh", lambda part: "c" in part and "f" in part)
    ('c', 'f')
    """
    current, parts = tuple(items), 2
    while len(current) >= 2:
        blocks = _split(current, parts)
        found = next((block for block in blocks if fails(block)), None)
        if found is not None:
            current, parts = found, 2
            continue
        rests = [tuple(x for x in current if x not in block) for block in blocks] if parts > 2 else []
        found = next((rest for rest in rests if fails(rest)), None)
        if found is not None:
            current, parts = found, max(parts - 1, 2)
        elif parts >= len(current):
            break
        else:
            parts = min(len(current), 2 * parts)
    return current


def _split(items: tuple[T, ...], parts: int) -> list[tuple[T, ...]]:
    """
    >>> _split((1, 2, 3, 4, 5), 2)
    [(1, 2), (3, 4, 5)]
    """
    ends = [len(items) * i // parts for i in range(parts + 1)]
    return [items[a:b] for a, b in pairwise(ends) if b > a]


@dataclass(frozen=True, slots=True)
class Suspect:
    """Where a bisection ended: the first bad position, how sure, after how many runs."""

    at: int
    probability: float
    runs: int


def bisect(many: int, broke: Callable[[int, int], bool | None], most: int = 60) -> Suspect:
    """The first bad one of `many` in order, the last of which is known to be bad (TRL-12).

    `broke(position, time)` runs position for the time-th time; None (it could not be run) tells nothing, and after
    two such answers the position is not asked again.

    >>> bisect(100, lambda at, time: at >= 37).at
    37
    """
    weight = [1.0 / many] * many
    asked = [0] * many
    silent = [0] * many
    runs = 0
    while runs < most and max(weight) < SURE:
        open_ = [i for i in range(many) if silent[i] < 2]
        if not open_:
            break
        total = 0.0
        below = []
        for w in weight:
            total += w
            below.append(total)
        # The answer tells most where it is as likely to be bad as to be good.
        at = min(open_, key=lambda i: abs(below[i] - 0.5))
        answer = broke(at, asked[at])
        asked[at] += 1
        runs += 1
        if answer is None:
            silent[at] += 1
            continue
        bad, good = (HIT, FALSE) if answer else (1 - HIT, 1 - FALSE)
        weight = [w * (bad if at >= i else good) for i, w in enumerate(weight)]
        whole = math.fsum(weight)
        weight = [w / whole for w in weight]
    best = max(range(many), key=weight.__getitem__)
    return Suspect(best, weight[best], runs)


def inverse(edits: Sequence[Edit], kept: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits of a run that keeps only `kept` as they are in the bad run: all others take the good value."""
    return tuple(edit for edit in edits if edit not in kept)


def words(edits: Sequence[Edit]) -> str:
    return ", ".join(f"{e.knob} ({_value(e.new)} in the good run, {_value(e.old)} in the bad one)" for e in edits)


def _value(value: object) -> str:
    return "not set" if value is None else str(value)


def commits_between(span: str, cwd: Path) -> tuple[str, tuple[str, ...]]:
    """The good commit and those after it up to the bad one, oldest first, along the first parents."""
    good, sep, bad = span.partition("..")
    if not sep or not good or not bad:
        raise InputError(
            f"--bisect {span!r} is not of the form GOOD..BAD.", do="Name two commits: --bisect v1.2..HEAD."
        )
    found = tuple(git(cwd, "rev-list", "--reverse", "--first-parent", f"{good}..{bad}").split())
    if not found:
        raise InputError(f"there is no commit between {good} and {bad}.", do="The good commit comes first: GOOD..BAD.")
    return git(cwd, "rev-parse", "--verify", f"{good}^{{commit}}").strip(), found
