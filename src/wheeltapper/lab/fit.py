"""Fit the tables of the judge on runs of known truth, and say how right they are on runs they were not fitted on.

Counts are counted. What is fitted beside them is one weight for each observation, between 0 and 1.2: it corrects for
observations that say the same. The weights maximise the likelihood of the truth (healthy, or the true cause), each run testifying
against tables from which it was taken out; a normal prior holds them near one half.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import msgspec
import numpy as np

from wheeltapper.judge.evidence import Grade
from wheeltapper.judge.posterior import calibrated, log_odds, pointed, scores
from wheeltapper.judge.tables import (
    FAR_OUT,
    HEALTHY,
    SOMETHING_ELSE,
    Pointers,
    States,
    Tables,
    counted,
    declared_causes,
    far_out,
    hypotheses,
    is_setting,
    log_ratios,
    state_count,
)
from wheeltapper.lab.labelled import Labelled
from wheeltapper.reading.record import Floats

MIDDLE, HOLD, TOP = 0.5, 10.0, 1.2  # of the weights: where the prior holds them, how firmly, and their largest value
STEPS = 100
LN2 = math.log(2)
FOLDS = 7
BINS, FEWEST_IN_BIN = 30, 20  # of the calibration
SLOPE = 0.33  # of the evidence within a pool of bins: the order is kept


def count(runs: Sequence[Labelled]) -> Tables:
    """The tables as counted, all weights alike."""
    held = _counted(runs)
    pooled = [msgspec.structs.replace(run, states={FAR_OUT: far_out(held, run.states, not run.ill)}) for run in runs if not run.bare]
    more = _counted(pooled)
    return msgspec.structs.replace(held, states={**held.states, **more.states})


def _counted(runs: Sequence[Labelled]) -> Tables:
    healthy: dict[str, Counter[int]] = defaultdict(Counter)
    ill: dict[str, Counter[int]] = defaultdict(Counter)
    by_cause: dict[str, dict[str, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
    named: Counter[tuple[str, str]] = Counter()
    proofs = _proofs(runs)
    for run in runs:
        for id_, state in run.states.items():
            (ill if run.ill else healthy)[id_][state] += 1
            if run.ill and not run.confounded:
                by_cause[id_][run.cause][state] += 1
        for cause, grade, _ in run.pointers:
            named[grade, "false" if not run.ill else "hit" if cause in (run.cause, *run.also) else "miss"] += 1

    def listed(counts: Counter[int], id_: str) -> list[int]:
        return [counts[s] for s in range(state_count(id_))]

    states = {
        id_: States(
            listed(healthy[id_], id_), listed(ill[id_], id_), {c: listed(n, id_) for c, n in sorted(by_cause[id_].items())}, MIDDLE
        )
        for id_ in sorted({*healthy, *ill})
    }
    looked = Counter(run.ill for run in runs if run.looked)
    runs = [run for run in runs if not run.bare]
    causes = Counter(run.cause for run in runs if run.ill and not run.confounded)
    pointers = {g: Pointers(named[g, "hit"], named[g, "miss"], named[g, "false"]) for g in get_args(Grade)}
    total = Counter(run.ill for run in runs)
    return Tables(
        states, dict(sorted(causes.items())), pointers, looked[True], looked[False], total[False], total[True], proofs.checks
    )  # fmt: skip


def _proofs(runs: Sequence[Labelled]) -> Tables:
    """In how many broken and healthy runs each check gave a proof; nothing else is filled in."""
    spoke: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for run in runs:
        for check in {check for _, grade, check in run.pointers if grade == "proof"}:
            spoke[check][0 if run.ill else 1] += 1
    return Tables({}, {}, {}, 0, 0, 0, 0, {check: (ill, well) for check, (ill, well) in sorted(spoke.items())})


@dataclass(frozen=True)
class Problem:
    """The runs as numbers: log likelihood ratios by run, hypothesis and observation."""

    ratios: Any  # single precision: it is large
    fixed: Floats  # by run and hypothesis: the prior and what code and settings say
    truth: Floats
    names: tuple[str, ...]


def pose(runs: Sequence[Labelled], held: Tables) -> Problem:
    """Each run against tables from which it was taken out."""
    declared = declared_causes()
    ids = tuple(declared)
    own = tuple(sorted({c for run in runs for c, _, _ in run.pointers if c not in declared} | {run.cause for run in runs if run.ill and run.cause not in declared}))
    hyp = hypotheses(held, ids, own)
    names = tuple(held.states)
    rows_of = {c: i for i, c in enumerate(ids)}
    by_id = {id_: counted(held, id_, ids) for id_ in names}
    known: dict[tuple[str, str | None, int], Floats] = {}
    ratios = np.zeros((len(runs), len(hyp.ids), len(names)), dtype=np.float32)
    fixed = np.tile(hyp.prior, (len(runs), 1))
    truth = np.zeros(len(runs), dtype=int)
    for r, run in enumerate(runs):
        true = run.cause if run.ill else None
        truth[r] = 0 if true is None else hyp.ids.index(true) if true in hyp.ids else len(hyp.ids) - 1
        states = {**run.states, FAR_OUT: far_out(held, run.states, not run.ill)}
        for k, id_ in enumerate(names):
            state = states.get(id_)
            if state is None:
                continue
            key = (id_, true, state)
            if key not in known:
                row = None if true is None else rows_of.get(true, -1)
                known[key] = log_ratios(by_id[id_], (row, state))[:, state]
            column = known[key]
            ratios[r, : len(ids) + 1, k] = column[:-1]
            ratios[r, -1, k] = 0.0 if is_setting(id_) else column[-1]
        for cause, grade, check in run.pointers:
            fixed[r] += pointed(held, cause, grade, check, hyp, int(run.ill))  # type: ignore[arg-type]
    return Problem(ratios, fixed, truth, names)


def weights_of(problem: Problem) -> dict[str, float]:
    """One weight for each observation, by projected gradient descent with momentum (the problem is smooth and convex enough)."""
    ratios, fixed, truth = problem.ratios, problem.fixed, problem.truth
    n, rows = len(truth), np.arange(len(truth))
    healthy = truth == 0
    flat = ratios.reshape(-1, ratios.shape[2])
    w = np.full(len(problem.names), MIDDLE)
    mean, square = np.zeros_like(w), np.zeros_like(w)
    for step in range(1, STEPS + 1):
        z = (flat @ w.astype(np.float32)).reshape(fixed.shape) + fixed
        z -= z.max(axis=1, keepdims=True)
        p = np.exp(z)
        p /= p.sum(axis=1, keepdims=True)
        gradient = p.copy()
        gradient[rows, truth] -= 1
        ill = p.copy()
        ill[:, 0] = 0
        ill /= np.maximum(ill.sum(axis=1, keepdims=True), 1e-12)
        toward = np.where(healthy[:, None], np.eye(p.shape[1])[0], ill)  # healthy or not counts as much as which cause
        gradient += p - toward
        slope = gradient.astype(np.float32).ravel() @ flat / n + HOLD / n * (w - MIDDLE)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        update = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        w = np.clip(w - 0.03 * update * (1 - step / (STEPS + 1)), 0.0, TOP)
    return dict(zip(problem.names, (float(x) for x in w), strict=True))


def fit(runs: Sequence[Labelled]) -> Tables:
    """Counts and weights, not yet calibrated."""
    held = count(runs)
    weights = weights_of(pose([run for run in runs if not run.bare], held))
    states = {id_: msgspec.structs.replace(s, weight=round(weights[id_], 3)) for id_, s in held.states.items()}
    return msgspec.structs.replace(held, states=states)


@dataclass(frozen=True, slots=True)
class Judged:
    """One run as judged by tables that had not seen it."""

    run: Labelled
    log_odds: float
    causes: tuple[str, ...]  # most probable first


def judge_with(held: Tables, runs: Sequence[Labelled]) -> list[Judged]:
    """Runs as these tables judge them."""
    out = []
    known: dict[str, Floats] = {}
    for run in runs:
        found = scores(held, run.states, run.pointers, known)  # type: ignore[arg-type]
        order = [found.ids[i] for i in np.argsort(-found.ranking) if found.ids[i] not in (HEALTHY, SOMETHING_ELSE)]
        out.append(Judged(run, log_odds(found.illness), tuple(order[:5])))
    return out


def left_out(runs: Sequence[Labelled], by: Callable[[Labelled], str], folds: int = FOLDS) -> list[Judged]:
    """Every run judged by tables fitted without its group (family, format, ...). Bare programs are in every fit and are not judged."""
    bare, runs = [run for run in runs if run.bare], [run for run in runs if not run.bare]
    groups = sorted({by(run) for run in runs})
    fold = {g: int(i) % folds for g, i in zip(groups, np.random.default_rng(1).permutation(len(groups)), strict=True)}
    out: list[Judged] = []
    for k in range(min(folds, len(groups))):
        rest = [*bare, *(run for run in runs if fold[by(run)] != k)]
        out += judge_with(fit(rest), [run for run in runs if fold[by(run)] == k])
    return out


def calibrate(held: Tables, judged: Sequence[Judged]) -> Tables:
    """Log odds to probabilities, as observed on left-out runs in bins of equal size, at the base rate of the tables. Bins that contradict
    the order are pooled (isotonic regression); within a pool the evidence keeps a third of its weight."""
    z = np.asarray([j.log_odds for j in judged])
    ill = np.asarray([j.run.ill for j in judged], dtype=float)
    prior = math.log(held.base_rate / (1 - held.base_rate)) - math.log(ill.sum() / (1 - ill).sum())
    order = np.argsort(z, kind="stable")
    bins = np.array_split(order, max(2, min(BINS, len(z) // FEWEST_IN_BIN)))
    centres = [float(np.median(z[b])) for b in bins]
    pooled = _rising([(float(ill[b].sum()), float(len(b))) for b in bins])
    knots: list[tuple[float, float]] = []
    middle = {pool: float(np.mean([at for at, p in zip(centres, pooled, strict=True) if p == pool])) for pool in set(pooled)}
    for at, (bad, runs) in zip(centres, pooled, strict=True):
        odds = math.log((bad + 0.5) / (runs - bad + 0.5)) + prior + SLOPE * (at - middle[bad, runs])
        knots.append((round(at, 3), round(1 / (1 + math.exp(-odds)), 4)))
    rising = np.maximum.accumulate([p for _, p in knots]).tolist()
    return msgspec.structs.replace(held, calibration=[(at, p) for i, ((at, _), p) in enumerate(zip(knots, rising, strict=True)) if i == 0 or at > knots[i - 1][0]])


def _rising(counts: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Neighbours whose shares of ill runs fall are pooled until all rise: (ill, runs) of the pool of each bin."""
    pools: list[tuple[float, float, int]] = []
    for bad, runs in counts:
        pools.append((bad, runs, 1))
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] >= pools[-1][0] * pools[-2][1]:
            last, before = pools.pop(), pools.pop()
            pools.append((before[0] + last[0], before[1] + last[1], before[2] + last[2]))
    return [(bad, runs) for bad, runs, size in pools for _ in range(size)]


def p_ill(held: Tables, judged: Judged) -> float:
    return calibrated(judged.log_odds, held.calibration)
