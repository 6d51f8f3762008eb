"""A labelled set of runs: many trainings with settings drawn at random, each beside its healthy twin.

The set is decided before it is made: the same numbers give the same runs, and a set that was broken off is
finished by the same command, since a run whose truth is written is not run again.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from wheeltapper.lab import need_torch
from wheeltapper.lab.faults import Benign, Fault, benign_of, faults_of
from wheeltapper.lab.launch import Plan, plan_run, plan_twin, run
from wheeltapper.lab.systems import Size, system
from wheeltapper.lab.truth import Truth, load, truth_path

BENIGN_SHARE = 0.25  # of the runs that are not twins; the twins, all healthy, come on top
KEEP_SCRIPT = 0.5  # half of the runs come without the training script, as many do


@dataclass(frozen=True, slots=True)
class Pair:
    """A run and the healthy one it is measured against."""

    odd: Plan
    twin: Plan


def plan_corpus(n: int, systems: Sequence[str], size: Size, seed: int = 0) -> tuple[list[Plan], list[Pair]]:
    """The healthy twins and the faulty or odd runs of a set of `n`, twins counted."""
    rng = Random(f"corpus:{seed}")
    draws = deal(systems, rng)
    twins: dict[str, Plan] = {}
    pairs: dict[str, Pair] = {}
    number = 0
    while len(twins) + len(pairs) < n:
        name, one = next(draws)
        # A few runs share their healthy settings, so that a twin serves several of them.
        if number % (4 * len(systems)) == 0:
            run_seed = 10_000 * (seed + 1) + number // (4 * len(systems))
            bases = {s: system(s).vary(system(s).RECIPES[size], Random(f"{run_seed}:{s}")) for s in systems}
        number += 1
        odd = plan_run(name, size, run_seed, one.id, bases[name], rng.random() < KEEP_SCRIPT)
        twin = replace(plan_twin(odd, bases[name]), keep_script=rng.random() < KEEP_SCRIPT)
        twins.setdefault(twin.name, twin)
        # The end of one deal and the beginning of the next may hold the same fault for the same settings: one run.
        pairs.setdefault(odd.name, Pair(odd, twins[twin.name]))
    return list(twins.values()), list(pairs.values())


def deal(systems: Sequence[str], rng: Random) -> Iterator[tuple[str, Fault | Benign]]:
    """Faults and oddities of all systems for ever, each kind shuffled and gone through before it repeats."""
    faults = [(s, one) for s in systems for one in faults_of(s)]
    benign = [(s, one) for s in systems for one in benign_of(s)]
    left: dict[str, list[tuple[str, Fault | Benign]]] = {"fault": [], "benign": []}
    while True:
        kind = "benign" if benign and rng.random() < BENIGN_SHARE else "fault"
        if not left[kind]:
            left[kind] = list(benign if kind == "benign" else faults)
            rng.shuffle(left[kind])
        yield left[kind].pop()


def make_corpus(
    n: int,
    out: Path,
    systems: Sequence[str],
    size: Size,
    *,
    jobs: int = 1,
    seed: int = 0,
    say: Callable[[str], None] = lambda _line: None,
) -> list[Truth]:
    """Run what is not run yet. First the twins, since the others are measured against them."""
    need_torch()
    twins, pairs = plan_corpus(n, systems, size, seed)
    total = len(twins) + len(pairs)
    done: list[Truth] = []
    stages: list[list[tuple[Plan, Path, str | None]]] = [
        [(plan, out, None) for plan in twins],
        [(pair.odd, out, pair.twin.name) for pair in pairs],
    ]
    for stage in stages:
        for truth in work(stage, jobs):
            done.append(truth)
            what = f"{truth.kind} {truth.fault or ''}".strip()
            say(f"[{len(done)}/{total}] {truth.run} {truth.system} {what}: {truth.measured or truth.ended}")
    return done


def work(tasks: list[tuple[Plan, Path, str | None]], jobs: int) -> Iterator[Truth]:
    if jobs == 1:
        yield from map(one_run, tasks)
        return
    import torch  # noqa: F401  (loaded once here, so that each forked child has it already)

    way = "fork" if sys.platform == "linux" else "spawn"
    # A process of its own for every run: memory that one leaks must not show in the next one's log.
    with multiprocessing.get_context(way).Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(one_run, tasks, chunksize=1)


def one_run(task: tuple[Plan, Path, str | None]) -> Truth:
    plan, out, twin = task
    return run(plan, out, load(truth_path(out, twin)) if twin else None)
