"""Exact small-sample tests by counting: Fisher, Boschloo, trend over doses, Holm, Student's distribution.

Everything here is numpy and integers; nothing is an approximation for large samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import permutations

import numpy as np

from wheeltapper.reading.record import Floats

# Nuisance rates at which Boschloo's p is looked for. Its p is a polynomial of degree n1 + n2 in the rate; at
# 1,001 points the maximum is off by under 1e-4 of itself for the sizes of a trial (two times 20).
RATES = np.linspace(0.0, 1.0, 1001)


def fisher_less(broke_a: int, n_a: int, broke_b: int, n_b: int) -> float:
    """Chance that A breaks so seldom against B if both break alike, given how many broke in all (one-sided).

    >>> round(fisher_less(0, 5, 5, 5), 4), round(fisher_less(0, 3, 3, 3), 3)
    (0.004, 0.05)
    """
    total = broke_a + broke_b
    ways = math.comb(n_a + n_b, total)
    low = max(0, total - n_b)
    return sum(math.comb(n_a, k) * math.comb(n_b, total - k) for k in range(low, broke_a + 1)) / ways


@lru_cache(maxsize=256)
def boschloo_less(broke_a: int, n_a: int, broke_b: int, n_b: int) -> float:
    """Fisher's p used as a statistic, and the largest chance of one so small over all common rates (Boschloo 1970).

    Exact like Fisher's test, never less powerful, and far less wasteful for a handful of runs.

    >>> round(boschloo_less(0, 3, 3, 3), 4)
    0.0156
    """
    at = fisher_less(broke_a, n_a, broke_b, n_b) * (1 + 1e-9)
    chance = np.zeros_like(RATES)
    for i in range(n_a + 1):
        for j in range(n_b + 1):
            if fisher_less(i, n_a, j, n_b) <= at:
                k, n = i + j, n_a + n_b
                chance += math.comb(n_a, i) * math.comb(n_b, j) * RATES**k * (1 - RATES) ** (n - k)
    return float(chance.max())


def mcnemar_less(only_control: int, only_arm: int) -> float:
    """Chance of so few pairs in which only the arm broke, if either is as likely (exact, one-sided; ST-05).

    >>> mcnemar_less(5, 0)
    0.03125
    """
    n = only_control + only_arm
    return float(sum(math.comb(n, k) for k in range(only_arm + 1)) / 2**n)


def holm(p: Mapping[str, float], alpha: float, claims: int = 0) -> dict[str, bool]:
    """Which claims stand when all together may err with chance `alpha` (Holm 1979).

    `claims` is how many were planned, where some have no p yet: they count as 1.

    >>> holm({"a": 0.01, "b": 0.03, "c": 0.5}, 0.05)
    {'a': True, 'b': False, 'c': False}
    """
    many = max(claims, len(p))
    stands = dict.fromkeys(p, False)
    for rank, name in enumerate(sorted(p, key=lambda name: p[name])):
        if not p[name] <= alpha / (many - rank):
            break
        stands[name] = True
    return stands


@lru_cache(maxsize=16)
def _orderings(many: int) -> tuple[tuple[int, ...], Floats]:
    """Every score (pairs in rising order minus pairs in falling order) of `many` values, and its share."""
    counts: dict[int, int] = {}
    for order in permutations(range(many)):
        score = sum(int(np.sign(order[j] - order[i])) for i in range(many) for j in range(i + 1, many))
        counts[score] = counts.get(score, 0) + 1
    scores = tuple(sorted(counts))
    return scores, np.array([counts[score] for score in scores]) / math.factorial(many)


def trend_p(blocks: Sequence[Sequence[float]]) -> float:
    """Chance of so rising an order over the doses, if the dose does nothing, at any look.

    Each block is one seed: the outcome at every dose, from the smallest to the largest. Without an effect all
    orders inside a block are alike, so exp(k S) over its mean is an e-value for any k (S counts rising minus
    falling pairs); the mean over some k of the products over blocks is one too, and one over it is a p that
    survives peeking. Ties count half each way, which can only weaken it. A run that broke has NaN there: pass
    its badness as inf.

    >>> round(trend_p([(1, 2, 3), (1, 2, 4), (2, 3, 5)]), 4)
    0.0125
    """
    if not blocks or len(blocks[0]) < 3 or len(blocks[0]) > 7:
        return 1.0
    many = len(blocks[0])
    scores, shares = _orderings(many)
    total = 0.0
    tilts = (0.25, 0.5, 1.0, 2.0)
    for tilt in tilts:
        mean = float(np.sum(shares * np.exp(tilt * np.array(scores))))
        value = 1.0
        for block in blocks:
            score = sum(
                int(block[j] > block[i]) - int(block[j] < block[i]) for i in range(many) for j in range(i + 1, many)
            )
            value *= math.exp(tilt * score) / mean
        total += value / len(tilts)
    return min(1.0, 1.0 / total) if total > 0 else 1.0


def student_cdf(t: Floats, nu: int) -> Floats:
    """Student's distribution function for whole degrees of freedom (Abramowitz & Stegun 26.7.3, 26.7.4).

    >>> student_cdf(np.array([0.0, 2.776445]), 4).round(6).tolist()
    [0.5, 0.975]
    """
    angle = np.arctan(np.asarray(t, dtype=np.float64) / math.sqrt(nu))
    square, sine = np.cos(angle) ** 2, np.sin(angle)
    term = np.cos(angle) if nu % 2 else np.ones_like(angle)
    total = term if nu > 1 else np.zeros_like(angle)
    for k in range(3 if nu % 2 else 2, nu - 1, 2):
        term = term * square * (k - 1) / k
        total = total + term
    inside = (angle + sine * total) * 2 / math.pi if nu % 2 else sine * total
    return np.asarray(0.5 + inside / 2, dtype=np.float64)
