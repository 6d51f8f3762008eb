"""The statistics of a trial, by simulation: error rates under continuous peeking, and power."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from wheeltapper.trial.exact import boschloo_less, fisher_less, holm, mcnemar_less, student_cdf, trend_p
from wheeltapper.trial.sequential import (
    bet_on_moments,
    confidence_sequence,
    fewer_evalue,
    normal_mixture_reach,
    over_evalue,
    sprt_broke,
    sprt_mean,
    t_bound,
    t_evalue,
)

ALPHA = 0.05
PLAYS, PAIRS = 4000, 25


def looks(x: np.ndarray, start: int = 2) -> np.ndarray:
    """The bet at every look of every play."""
    return np.stack([t_evalue(x[:, :n]) for n in range(start, x.shape[1] + 1)], 1)


def normal(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(PLAYS, PAIRS))


def heavy(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_t(2, (PLAYS, PAIRS)) - rng.standard_t(2, (PLAYS, PAIRS))


def unequal(rng: np.random.Generator) -> np.ndarray:
    """The arms have spreads of 1 and 10, the same centre."""
    return rng.normal(size=(PLAYS, PAIRS)) - 10 * rng.normal(size=(PLAYS, PAIRS))


def skewed(rng: np.random.Generator) -> np.ndarray:
    return rng.lognormal(0, 1.5, (PLAYS, PAIRS)) - rng.lognormal(0, 1.5, (PLAYS, PAIRS))


def clustered(rng: np.random.Generator) -> np.ndarray:
    """Every run is either well or ill by luck, and runs of one kind are nearly equal."""
    one, two = (np.round(rng.random((PLAYS, PAIRS))) + 0.1 * rng.normal(size=(PLAYS, PAIRS)) for _ in range(2))
    return one - two


def tied(rng: np.random.Generator) -> np.ndarray:
    """A coarse grid: most differences are exactly 0."""
    return np.round(0.4 * rng.normal(size=(PLAYS, PAIRS))) - np.round(0.4 * rng.normal(size=(PLAYS, PAIRS)))


def spread_differs(rng: np.random.Generator) -> np.ndarray:
    """Each pair has its own spread: some seeds are wild."""
    return rng.normal(size=(PLAYS, PAIRS)) * rng.lognormal(0, 1, (PLAYS, PAIRS))


@pytest.mark.parametrize("null", [normal, heavy, unequal, skewed, clustered, tied, spread_differs])
def test_peeking_at_every_pair_keeps_alpha(null: Callable[[np.random.Generator], np.ndarray]) -> None:
    ever = looks(null(np.random.default_rng(1))).max(1)
    assert np.mean(ever >= 1 / ALPHA) <= ALPHA
    assert np.mean(ever >= 3 / ALPHA) <= ALPHA / 3


def test_a_plain_t_test_would_not_keep_it() -> None:
    """The simulation can fail: the fixed-size test at every look errs several times too often."""
    x = normal(np.random.default_rng(1))
    n = np.arange(2, PAIRS + 1)
    wrong = np.zeros(PLAYS, dtype=bool)
    for many in n:
        t = x[:, :many].mean(1) / x[:, :many].std(1, ddof=1) * math.sqrt(many)
        wrong |= student_cdf(t, int(many) - 1) >= 1 - ALPHA
    assert np.mean(wrong) > 3 * ALPHA


def test_a_mean_below_zero_is_rejected_even_less_often() -> None:
    rng = np.random.default_rng(2)
    x = normal(rng)
    assert np.all(looks(x - 0.3) <= looks(x) * (1 + 1e-9))  # at every look of every play, as the proof says


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_the_expected_bet_is_one(n: int) -> None:
    """The definition of an e-value, by integration over Student's density: it proves the closed form."""
    nu = n - 1
    angle = np.linspace(-math.pi / 2, math.pi / 2, 2_000_001)[1:-1]
    t = math.sqrt(nu) * np.tan(angle)
    density = np.cos(angle) ** (nu - 1)  # Student's density in t, times dt / d angle, up to a constant
    bet = bet_on_moments(t / math.sqrt(n), np.full_like(t, float(nu)), n, one_sided=True)
    assert float(np.sum(bet * density) / np.sum(density)) == pytest.approx(1.0, abs=2e-4)


def test_scale_does_not_matter() -> None:
    x = np.array([1.0, 2.0, 1.5, 1.2])
    assert float(t_evalue(x)) == pytest.approx(float(t_evalue(1e-9 * x)), rel=1e-6)


@pytest.mark.parametrize(("effect", "pairs"), [(1.0, 18), (2.0, 8), (4.0, 5), (10.0, 4)])
def test_power(effect: float, pairs: int) -> None:
    """Eight of ten trials are decided by then; KNOWLEDGE TRL-05 needs 10, 5, 3 without any peeking."""
    x = np.random.default_rng(4).normal(effect, 1, (PLAYS, pairs))
    assert np.mean(looks(x).max(1) >= 1 / ALPHA) >= 0.8


def test_the_floor_weakens_a_lucky_agreement() -> None:
    same = np.array([1.0, 1.0, 1.0])
    assert float(t_evalue(same)) > 100
    assert float(t_evalue(same, floor=0.41)) < 10
    assert float(t_evalue(np.zeros(5))) < 1


def test_confidence_sequence_covers_at_every_look() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(3.0, 2.0, (1500, 15))
    missed = np.zeros(len(x), dtype=bool)
    for n in range(2, 16):
        reach = t_bound(n, ALPHA) * x[:, :n].std(1, ddof=1) / math.sqrt(n)
        missed |= np.abs(x[:, :n].mean(1) - 3.0) > reach
    assert missed.mean() <= ALPHA
    low, high = confidence_sequence(x[0], ALPHA)
    assert low < 3.0 < high
    assert confidence_sequence(np.array([1.0, math.nan, 2.0]), ALPHA) == (-math.inf, math.inf)


def test_t_bound_is_where_the_bet_pays() -> None:
    for n in (3, 5, 20):
        t = t_bound(n, 0.05)
        value = bet_on_moments(np.array(t / math.sqrt(n)), np.array(float(n - 1)), n, one_sided=False)
        assert float(value) == pytest.approx(20, rel=1e-6)
    assert t_bound(1, 0.05) == math.inf


def test_normal_mixture_keeps_alpha_when_the_noise_is_known() -> None:
    x = np.random.default_rng(6).normal(size=(3000, 300))
    n = np.arange(1, 301)
    mean = np.cumsum(x, 1) / n
    assert np.mean((np.abs(mean) > normal_mixture_reach(n, 1.0, ALPHA)).any(1)) <= ALPHA


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_diverged_or_not_keeps_alpha_under_peeking(rate: float) -> None:
    rng = np.random.default_rng(7)
    control, arm = rng.random((PLAYS, 30)) < rate, rng.random((PLAYS, 30)) < rate
    kinds = [control & arm, control & ~arm, ~control & arm, ~control & ~arm]
    counts = [np.cumsum(kind, 1) for kind in kinds]
    bets = fewer_evalue(*counts)
    assert np.mean((bets >= 1 / ALPHA).any(1)) <= ALPHA


def test_pairs_that_break_together_only_lower_the_bet() -> None:
    """Same seed, same fate: positive dependence within pairs."""
    rng = np.random.default_rng(8)
    seed = rng.random((PLAYS, 30))
    control, arm = (0.7 * seed + 0.3 * rng.random((PLAYS, 30)) < 0.5 for _ in range(2))
    kinds = [control & arm, control & ~arm, ~control & arm, ~control & ~arm]
    assert np.mean((fewer_evalue(*(np.cumsum(kind, 1) for kind in kinds)) >= 1 / ALPHA).any(1)) <= ALPHA / 2


def test_three_of_each_are_not_enough_and_four_are() -> None:
    bet = [float(fewer_evalue(np.array(0), np.array(n), np.array(0), np.array(0))) for n in (3, 4)]
    assert bet[0] < 20 < 60 <= bet[1]


def test_one_rate_keeps_alpha() -> None:
    hits = np.cumsum(np.random.default_rng(9).random((PLAYS, 30)) < 0.25, 1)
    bets = over_evalue(hits, np.arange(1, 31), 0.25)
    assert np.mean((bets >= 1 / ALPHA).any(1)) <= ALPHA


def test_sprt_errs_as_stated_and_stops_early() -> None:
    rng = np.random.default_rng(10)
    for rate, right in ((0.1, "no"), (0.9, "yes")):
        answers = [sprt_broke(list(rng.random(40) < rate)) for _ in range(1000)]
        assert sum(one.answer != right for one in answers) <= 50
        assert np.mean([one.looks for one in answers]) < 4
    x = rng.normal(0.5, 1, (600, 200))
    found = [sprt_mean(list(row), 0.5, 1.0) for row in x]
    assert sum(one.answer != "yes" for one in found) <= 30
    assert np.mean([one.looks for one in found]) < 34  # KNOWLEDGE ST-11: about half of the 43 of a fixed size


def test_exact_tests_against_known_values() -> None:
    assert fisher_less(0, 4, 4, 4) == pytest.approx(1 / 70)
    assert 2 * fisher_less(0, 5, 5, 5) == pytest.approx(0.0079, abs=1e-4)  # KNOWLEDGE TRL-06
    assert boschloo_less(0, 4, 4, 4) == pytest.approx(1 / 256)
    assert boschloo_less(1, 6, 5, 6) < fisher_less(1, 6, 5, 6)
    assert mcnemar_less(6, 1) == pytest.approx(8 / 128)


def test_boschloo_is_exact_for_every_rate() -> None:
    rng = np.random.default_rng(11)
    for rate in (0.2, 0.5, 0.8):
        one, two = rng.binomial(5, rate, 3000), rng.binomial(5, rate, 3000)
        assert np.mean([boschloo_less(int(a), 5, int(b), 5) <= ALPHA for a, b in zip(one, two, strict=True)]) <= 0.06


def test_holm_keeps_the_family() -> None:
    rng = np.random.default_rng(12)
    wrong = 0
    for p in rng.random((2000, 4)):
        wrong += any(holm({str(k): float(one) for k, one in enumerate(p)}, ALPHA).values())
    assert wrong / 2000 <= ALPHA + 0.01
    assert holm({"a": 0.02}, ALPHA, claims=3) == {"a": False}
    assert holm({"a": 0.01, "b": 0.02, "c": 0.04}, ALPHA) == {"a": True, "b": True, "c": True}


def test_dose_trend_keeps_alpha_and_sees_a_trend() -> None:
    rng = np.random.default_rng(13)
    wrong = sum(min(trend_p(x[:n].tolist()) for n in range(1, 9)) <= ALPHA for x in rng.normal(size=(600, 8, 4)))
    assert wrong <= 30
    tied_values = np.round(rng.normal(size=(600, 8, 3)))
    assert sum(min(trend_p(x[:n].tolist()) for n in range(1, 9)) <= ALPHA for x in tied_values) <= 30
    assert trend_p([(1, 2, 3, 4)] * 2) <= ALPHA
    assert trend_p([(3, 2, 1)] * 5) == 1.0
    assert trend_p([(1.0, 2.0, math.inf)] * 3) < ALPHA


def test_student_matches_a_table() -> None:
    for nu, t in ((1, 6.313752), (2, 2.919986), (3, 2.353363), (7, 1.894579), (30, 1.697261)):
        assert float(student_cdf(np.array(t), nu)) == pytest.approx(0.95, abs=1e-6)
