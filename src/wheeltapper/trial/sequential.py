"""Tests that stay honest however often one looks (KNOWLEDGE ST-11): e-processes, confidence sequences, SPRT.

An e-value is a bet against "no effect" that wins nothing on average if there is none. By Ville's inequality
the chance that it ever passes 1/alpha is at most alpha, so a trial may be stopped at any look.

Paired differences: the t-test that is valid at any time. For X_i normal with unknown mean and spread, mix the
standardised effect over N(0, g) and the spread over its right Haar measure: the likelihood ratio of the scale
invariant part is (K = 1 + n g, nu = n - 1)

    B_n = K^(-1/2) * ((1 + t^2/nu) / (1 + t^2/(nu K)))^(n/2)

and is a martingale under mean 0 for every spread (Lai 1976; Wang & Ramdas 2023, arXiv:2310.03722; Perez-Ortiz et
al. 2022, arXiv:2208.07610). With the half-normal on positive effects it becomes 2 B_n P(mean > 0 | data), where
the mean is m + s T, T of Student's law with n degrees, m = g S1/K, s^2 = (S2 - g S1^2/K)/n * g/K. The one-sided
bet also holds for every mean below 0: taking a constant off all values lowers t at every n at once, and the bet
rises with t. A mean of bets over several g is a bet.

Diverged or not: two streams of Bernoulli outcomes, one block a pair (Turner, Ly & Grünwald 2024, arXiv:2106.02693):
the likelihood under two rates over that under their mean. For arms of one seed that go together the value only
gets smaller under "no effect", so pairing by seed does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from wheeltapper.reading.record import Floats
from wheeltapper.trial.exact import student_cdf

# Variances of the standardised effect. A wide mix: 1 is for effects near the noise, 100 for a fault that is
# mended (10 spreads). Measured median pairs to 1/alpha = 20: d = 0.5: 34, 1: 11, 2: 5, 3: 4, 6 and over: 3
# (LOG.md, trial statistics); one g = 1 alone never decides before 4 pairs, one g = 100 wastes pairs at d = 1.
SPREADS = (1.0, 10.0, 100.0)
# Prior over rates for diverged-or-not: Beta(0.2, 0.2), as runs of one setting mostly all break or all hold. It
# gives 19 after three pairs that all differ and 60 after four: three of each are not enough (TRL-06), four are,
# even for three arms at once.
RATE_SHAPE, RATE_GRID = 0.2, 40


def t_evalue(x: Floats, floor: float = 0.0) -> Floats:
    """The bet that the mean of x is over 0, along the last axis; the first axes are separate trials.

    `floor` is the least spread to believe in (the noise of A/A pairs, the rounding of the log): a larger
    spread only makes |t| smaller, so the bet stays honest. Fewer than two values give 1.
    """
    x = np.asarray(x, dtype=np.float64)
    n = x.shape[-1]
    if n < 2:
        return np.ones(x.shape[:-1])
    mean = x.mean(-1)
    # A floor on the sum of squares about the mean; the last term keeps equal values from dividing by zero.
    rest = np.maximum(((x - mean[..., None]) ** 2).sum(-1), max((n - 1) * floor**2, 1e-24))
    rest = np.maximum(rest, 1e-24 * n * mean**2)
    return bet_on_moments(mean, rest, n, one_sided=True)


def bet_on_moments(mean: Floats, rest: Floats, n: int, one_sided: bool) -> Floats:
    ratio = n * mean**2 / rest  # t^2 / (n - 1)
    total = np.zeros_like(ratio)
    for g in SPREADS:
        wide = 1 + n * g
        bet = np.exp(-0.5 * math.log(wide) + n / 2 * (np.log1p(ratio) - np.log1p(ratio / wide)))
        if one_sided:
            square = rest + n * mean**2 / wide  # S2 - g S1^2 / K
            centre, scale = g * n * mean / wide, np.sqrt(square / n * g / wide)
            bet = 2 * bet * student_cdf(centre / scale, n)
        total += bet / len(SPREADS)
    return total


@lru_cache(maxsize=1024)
def t_bound(n: int, alpha: float) -> float:
    """How many standard errors each way the confidence sequence reaches after n pairs; inf if n is too few."""
    if n < 2:
        return math.inf

    def passed(t: float) -> bool:
        value = bet_on_moments(np.array(t / math.sqrt(n)), np.array(float(n - 1)), n, one_sided=False)
        return bool(value >= 1 / alpha)

    low, high = 0.0, 1.0
    while not passed(high):
        low, high = high, high * 2
        if high > 1e9:
            return math.inf
    for _ in range(60):
        mid = (low + high) / 2
        low, high = (low, mid) if passed(mid) else (mid, high)
    return high


def confidence_sequence(x: Floats, alpha: float, floor: float = 0.0) -> tuple[float, float]:
    """The mean of x lies in here at every look at once, with chance 1 - alpha (normal x, unknown spread).

    >>> low, high = confidence_sequence(np.array([1.0, 1.1, 0.9, 1.05, 0.95]), 0.05)
    >>> round(low, 2), round(high, 2)
    (0.78, 1.22)
    """
    x = np.asarray(x, dtype=np.float64)
    n = len(x)
    if n < 2 or not np.isfinite(x).all():
        return -math.inf, math.inf
    spread = max(float(x.std(ddof=1)), floor)
    reach = t_bound(n, alpha) * spread / math.sqrt(n) if spread else 0.0
    return float(x.mean()) - reach, float(x.mean()) + reach


def normal_mixture_reach(n: Floats, sigma: float, alpha: float, rho: float = 1.0) -> Floats:
    """Reach of the confidence sequence of a mean when the noise is known (Howard et al. 2021, arXiv:1810.08240).

    For what people watch while arms run: a paired curve whose noise was measured by A/A before. `rho` is where
    it is tightest, in observations.
    """
    n = np.asarray(n, dtype=np.float64)
    return np.asarray(sigma * np.sqrt((n + rho) * np.log((n + rho) / (rho * alpha**2))) / n, dtype=np.float64)


@lru_cache(maxsize=1)
def _two_rates() -> tuple[Floats, Floats, Floats]:
    """Rates of the control and of the arm (lower), and the weights of the prior."""
    rate = (np.arange(RATE_GRID) + 0.5) / RATE_GRID
    weight = (rate * (1 - rate)) ** (RATE_SHAPE - 1)
    control, arm = np.meshgrid(rate, rate, indexing="ij")
    both = np.outer(weight, weight) * (control > arm)
    keep = both > 0
    return control[keep], arm[keep], both[keep] / both.sum()


def fewer_evalue(both: Floats, only_control: Floats, only_arm: Floats, neither: Floats) -> Floats:
    """The bet that the arm breaks less often than the control, from the four counts of pairs.

    >>> float(fewer_evalue(*(np.array(k) for k in (0, 4, 0, 0))).round(1))
    60.1
    """
    control, arm, weight = _two_rates()
    mean = (control + arm) / 2
    logs = np.stack(
        [
            np.log(control * arm / mean**2),
            np.log(control * (1 - arm) / (mean * (1 - mean))),
            np.log((1 - control) * arm / (mean * (1 - mean))),
            np.log((1 - control) * (1 - arm) / (1 - mean) ** 2),
        ]
    )
    counts = np.stack([np.asarray(k, dtype=np.float64) for k in (both, only_control, only_arm, neither)], -1)
    return np.asarray(np.exp(counts @ logs) @ weight, dtype=np.float64)


def over_evalue(hits: Floats, n: Floats, rate: float) -> Floats:
    """The bet that something happens more often than `rate`, from how often it did.

    >>> float(over_evalue(np.array(3), np.array(3), 0.25).round(1))
    34.5
    """
    grid = (np.arange(RATE_GRID) + 0.5) / RATE_GRID
    weight = (grid * (1 - grid)) ** (RATE_SHAPE - 1) * (grid > rate)
    weight = weight / weight.sum()
    keep = weight > 0
    grid, weight = grid[keep], weight[keep]
    hits, n = np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)
    logs = hits[..., None] * np.log(grid / rate) + (n - hits)[..., None] * np.log((1 - grid) / (1 - rate))
    return np.asarray(np.exp(logs) @ weight, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Sprt:
    """Where Wald's test stands: accept "yes", accept "no", or go on; `odds` are yes to no."""

    answer: Literal["yes", "no", "go on"]
    odds: float
    looks: int


def sprt(log_ratios: Sequence[float], alpha: float = 0.05, beta: float = 0.05) -> Sprt:
    """Wald's sequential test (1945) on log likelihood ratios of "yes" to "no", for decisions on a budget.

    `alpha` is the chance of "yes" when it is no, `beta` of "no" when it is yes. Looks after the first
    crossing are not counted.

    >>> sprt([math.log(9), math.log(9)]).answer
    'yes'
    """
    high, low = math.log((1 - beta) / alpha), math.log(beta / (1 - alpha))
    total = 0.0
    for look, ratio in enumerate(log_ratios, 1):
        total += ratio
        if total >= high:
            return Sprt("yes", math.exp(min(total, 700.0)), look)
        if total <= low:
            return Sprt("no", math.exp(total), look)
    return Sprt("go on", math.exp(total), len(log_ratios))


def sprt_broke(broke: Sequence[bool], rate_bad: float = 0.9, rate_good: float = 0.1, **error: float) -> Sprt:
    """Does this setting break? Runs that broke or held, against the two rates: the oracle of ddmin and bisect.

    >>> sprt_broke([True, True]).answer, sprt_broke([True, False, False, False]).answer
    ('yes', 'no')
    """
    hit, miss = math.log(rate_bad / rate_good), math.log((1 - rate_bad) / (1 - rate_good))
    return sprt([hit if one else miss for one in broke], **error)


def sprt_mean(x: Sequence[float], effect: float, sigma: float, **error: float) -> Sprt:
    """Is the mean `effect` (yes) or 0 (no), for normal x of known spread?"""
    return sprt([effect / sigma**2 * (value - effect / 2) for value in x], **error)
