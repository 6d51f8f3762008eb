"""Verdicts: what is confirmed, refuted and left open, and how often that is wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from wheeltapper.trial.compare import decide, decide_all, equivalent, ladder, noise_floor, rate_bias, rounding_of
from wheeltapper.trial.judge import heed_crashes, in_order
from wheeltapper.trial.model import Outcome, Rule, Verdict

SYMPTOM = Rule("symptom", "val/loss", "down")
BETTER = Rule("difference", "val/accuracy", "up", delta=5.0)


def broke(*flags: bool | None) -> list[Outcome]:
    return [Outcome(seed, None, flag) for seed, flag in enumerate(flags)]


def ended(*values: float | None, broke: Sequence[bool | None] | bool | None = None) -> list[Outcome]:
    flags = broke if isinstance(broke, Sequence) else [broke] * len(values)
    return [Outcome(seed, value, flag) for seed, (value, flag) in enumerate(zip(values, flags, strict=True))]


class TestSymptom:
    def test_gone_in_four_pairs_is_confirmed_and_in_three_is_not(self) -> None:
        four = decide(broke(*[True] * 4), broke(*[False] * 4), SYMPTOM)
        assert (four.answer, four.rung, four.pairs) == ("confirmed", "removed", 4)
        assert "4 of 4" in four.why
        assert "0 of 4" in four.why
        three = decide(broke(*[True] * 3), broke(*[False] * 3), SYMPTOM)
        assert (three.answer, three.more) == ("cannot-tell", 1)
        one = decide(broke(True), broke(False), SYMPTOM)
        assert (one.answer, one.more) == ("cannot-tell", 3)

    def test_it_stays(self) -> None:
        found = decide(broke(True, True, True), broke(True, True, True), SYMPTOM)
        assert (found.answer, found.rung) == ("refuted", "reproduced")
        assert decide(broke(True, True), broke(True, True), SYMPTOM).answer == "cannot-tell"

    def test_control_must_reproduce(self) -> None:
        found = decide(broke(*[False] * 5), broke(*[False] * 5), SYMPTOM)
        assert found.answer == "cannot-tell"
        assert "control did not show the symptom (0 of 5 runs)" in found.why
        assert found.more is None

    def test_half_a_cure_is_not_confirmed_however_many_pairs(self) -> None:
        control, arm = broke(*[True] * 40), broke(*[True, False] * 20)
        found = decide(control, arm, SYMPTOM)
        assert found.answer == "refuted"
        assert found.p is not None
        assert found.p < 0.001  # the arm does break less often; it is not the cure

    def test_postponed_is_told_apart(self) -> None:
        control = [Outcome(s, None, True, onset=100 + s) for s in range(4)]
        arm = [Outcome(s, None, True, onset=300 + s) for s in range(4)]
        assert "3.0 times later in every pair: postponed, not removed" in decide(control, arm, SYMPTOM).why

    def test_unknown_is_not_counted_as_gone(self) -> None:
        found = decide(broke(*[True] * 5), broke(False, None, None, None, None), SYMPTOM)
        assert (found.answer, found.pairs) == ("cannot-tell", 1)

    def test_only_shared_seeds_are_pairs(self) -> None:
        arm = [replace(one, seed=one.seed + 100) for one in broke(*[False] * 5)]
        assert decide(broke(*[True] * 5), arm, SYMPTOM).pairs == 0

    def test_more_arms_need_more_pairs(self) -> None:
        many = replace(SYMPTOM, arms=8)
        assert decide(broke(*[True] * 4), broke(*[False] * 4), many).answer == "cannot-tell"
        assert decide(broke(*[True] * 6), broke(*[False] * 6), many).answer == "confirmed"


class TestDifference:
    def test_clear_gain(self) -> None:
        found = decide(ended(50, 51, 49, 50.5, broke=True), ended(80, 82, 79, 80.2, broke=False), BETTER)
        assert (found.answer, found.rung) == ("confirmed", "removed")
        assert found.effect == pytest.approx(30.175)
        assert found.low is not None
        assert found.low > 5

    def test_lower_is_better(self) -> None:
        rule = Rule("difference", "val/loss", "down", delta=0.2)
        found = decide(ended(2.0, 2.1, 1.9, 2.05), ended(1.0, 1.2, 0.95, 1.1), rule)
        assert found.answer == "confirmed"
        assert found.effect == pytest.approx(-0.95)
        assert found.high is not None
        assert found.high < -0.2

    def test_less_than_matters_is_refuted_with_what_it_is(self) -> None:
        same = decide(ended(50, 51, 49, 50), ended(50.5, 50.8, 49.6, 49.9), BETTER)
        assert same.answer == "refuted"
        assert "equivalence" in same.why
        little = decide(
            ended(*[50.0] * 8), ended(52, 52.2, 51.9, 52.1, 52.0, 52.3, 51.8, 52.1), replace(BETTER, delta=2.5)
        )
        assert little.answer == "refuted"
        assert "No effect that matters" in little.why
        worse = decide(ended(50, 51, 49, 50, broke=True), ended(30, 31.5, 28.8, 30.4, broke=True), BETTER)
        assert worse.answer == "refuted"
        assert "worse" in worse.why

    def test_three_pairs_never_confirm(self) -> None:
        found = decide(ended(1, 1.1, 0.9), ended(90, 91, 89), BETTER)
        assert (found.answer, found.more) == ("cannot-tell", 1)

    def test_control_that_is_well(self) -> None:
        found = decide(ended(*[80] * 5, broke=False), ended(90, 91, 92, 90, 91), BETTER)
        assert "did not show the symptom" in found.why
        some = decide(ended(*[80] * 5, broke=[True, False, False, False, False]), ended(90, 91, 92, 90, 91), BETTER)
        assert "in only 1 of 5" in some.why

    def test_better_but_still_ill(self) -> None:
        found = decide(ended(10, 11, 9, 10, 12, broke=True), ended(40, 41, 38, 40, 42, broke=True), BETTER)
        assert found.answer == "cannot-tell"
        assert "part of the cause at most" in found.why

    def test_a_diverged_arm_is_never_dropped(self) -> None:
        found = decide(ended(50, 51, 49, 50, 52, 50), ended(90, 91, math.nan, 90, 91, 92), BETTER)
        assert found.answer == "cannot-tell"
        assert "1 of 6 runs with the change broke" in found.why
        worse = decide(ended(50, 51, 49, 50), ended(*[math.nan] * 4), BETTER)
        assert worse.answer == "refuted"
        assert "worse" in worse.why

    def test_a_diverged_control_is_the_symptom(self) -> None:
        found = decide(ended(*[math.nan] * 4), ended(80, 81, 79, 80), BETTER)
        assert found.answer == "confirmed"
        assert "4 of 4 control runs" in found.why
        still = decide(ended(*[math.inf] * 4), ended(*[math.nan] * 4), BETTER)
        assert still.answer == "refuted"

    def test_learning_rate_without_equal_cooldown(self) -> None:
        control, arm = ended(50, 51, 49, 50.5), ended(80, 82, 79, 80.2)
        found = decide(control, arm, BETTER, bias="for")
        assert found.answer == "cannot-tell"
        assert "not fair" in found.why
        assert decide(control, arm, BETTER, bias="against").answer == "confirmed"  # in spite of the bias
        slow = decide(control, ended(50.2, 51, 49.1, 50), BETTER, bias="against")
        assert (slow.answer, "not fair" in slow.why) == ("cannot-tell", True)

    def test_noise_of_equal_runs_is_the_floor(self) -> None:
        control, arm = ended(50, 51, 49, 50), ended(56, 57.1, 55, 56)
        assert decide(control, arm, BETTER).answer == "confirmed"
        noisy = ended(60, 42, 58, 41)
        assert noise_floor(control, noisy).spread == pytest.approx(math.sqrt((100 + 81 + 81 + 81) / 4))
        assert decide(control, arm, BETTER, aa=noisy).answer == "cannot-tell"

    def test_rounded_values_that_agree_by_luck(self) -> None:
        """An accuracy in steps of 5 %: four equal gains of one step are not four exact measurements."""
        rule = replace(BETTER, delta=1.0)
        assert decide(ended(50, 55, 45, 50), ended(55, 60, 50, 55), rule).answer == "cannot-tell"

    @pytest.mark.parametrize(
        ("values", "grid"),
        [
            ((50, 55, 45, 60), 5),
            ((0.25, 0.5, 0.3125, 1.0), 0.0625),
            ((1 / 3, 2 / 3, 2.0, 5 / 3), 1 / 3),
            ((7.0, 7.0), 0),
        ],
    )
    def test_grid_of_the_values(self, values: tuple[float, ...], grid: float) -> None:
        one = ended(*values)
        assert rounding_of(list(zip(one, one, strict=True))) == pytest.approx(grid)

    def test_measured_values_have_no_grid(self) -> None:
        rng = np.random.default_rng(0)
        for _ in range(50):
            one, two = ended(*rng.normal(30, 1, 4)), ended(*rng.normal(33, 1, 4))
            assert rounding_of(list(zip(one, two, strict=True))) < 0.02

    def test_without_delta_the_seeds_say_what_matters(self) -> None:
        rule = replace(BETTER, delta=None)
        assert decide(ended(50, 54, 46, 51), ended(50.1, 54.2, 46, 51.1), rule).answer == "refuted"
        assert decide(ended(50, 54, 46, 51), ended(80, 84.5, 76.2, 80), rule).answer == "confirmed"


class TestErrorRates:
    """Whole trials, looked at after every pair, as the driver does."""

    def test_no_effect_is_hardly_ever_confirmed(self) -> None:
        rng = np.random.default_rng(1)
        wrong = 0
        for _ in range(100):
            base = rng.normal(50, 4, 8)
            control = ended(*(base + rng.normal(0, 1, 8)), broke=True)
            arms = {str(k): ended(*(base + rng.normal(0, 1, 8))) for k in range(3)}
            wrong += any(
                one.answer == "confirmed"
                for n in range(2, 9)
                for one in decide_all(
                    control[:n], {k: v[:n] for k, v in arms.items()}, replace(BETTER, delta=0.0), forecast=False
                ).values()
            )
        assert wrong <= 5

    def test_a_wrong_cause_that_helps_by_less_than_delta(self) -> None:
        rng = np.random.default_rng(2)
        answers = []
        for _ in range(100):
            control, arm = ended(*rng.normal(50, 1, 8), broke=True), ended(*rng.normal(53.5, 1, 8))
            found = (decide(control[:n], arm[:n], BETTER, forecast=False).answer for n in range(2, 9))
            answers.append(next((a for a in found if a != "cannot-tell"), "cannot-tell"))
        assert answers.count("confirmed") <= 5

    def test_a_true_cause_is_confirmed_and_hardly_ever_refuted(self) -> None:
        rng = np.random.default_rng(3)
        answers = []
        for _ in range(100):
            control, arm = ended(*rng.normal(50, 1, 8), broke=True), ended(*rng.normal(60, 1, 8))
            found = (decide(control[:n], arm[:n], BETTER, forecast=False).answer for n in range(2, 9))
            answers.append(next((a for a in found if a != "cannot-tell"), "cannot-tell"))
        assert answers.count("refuted") <= 5
        assert answers.count("confirmed") >= 90

    def test_holm_over_arms(self) -> None:
        control = broke(*[True] * 4)
        arms = {"a": broke(*[False] * 4), "b": broke(*[True] * 4), "c": broke(*[True] * 4)}
        found = decide_all(control, arms, replace(SYMPTOM, arms=3))
        assert {name: one.answer for name, one in found.items()} == {"a": "confirmed", "b": "refuted", "c": "refuted"}


def test_equivalence_needs_enough_pairs() -> None:
    rng = np.random.default_rng(4)
    wrong = sum(any(equivalent(x[:n], 1.0, 0.05) for n in range(2, 12)) for x in rng.normal(1.0, 1, (200, 12)))
    assert wrong <= 10
    assert not equivalent(np.array([0.1, -0.2]), 1.0, 0.05)
    assert equivalent(np.array([0.1, -0.2, 0.0, 0.1, -0.1]), 1.0, 0.05)


def test_fair_rates() -> None:
    assert rate_bias([0.3, 0.3], [0.03, 0.03]) == "for"
    assert rate_bias([0.03, 0.03], [0.3, 0.3]) == "against"
    assert rate_bias([0.3, 0.01], [0.03, 0.001]) == ""
    assert rate_bias([0.3, 0.1], [0.2, 0.1]) == ""
    assert rate_bias([], [0.1]) == ""
    assert rate_bias([0.0008, 0.0008], [0.012, 0.0]) == ""  # a warm-up that never ends against a full schedule
    assert rate_bias([0.3, 0.3], [0.3, 0.0]) == "for"


def test_ladder() -> None:
    done = Verdict("confirmed", "", rung="removed")
    no, yes = Verdict("refuted", ""), Verdict("confirmed", "")
    assert ladder(done) == "removed"
    assert ladder(done, again=yes) == "re-inserted"
    assert ladder(done, again=no) == "removed"
    assert ladder(done, again=yes, dose_p=0.01) == "dose-response"
    assert ladder(done, dose_p=0.2) == "removed"
    assert ladder(done, again=yes, placebo=no) == "specific"
    assert ladder(done, placebo=no) == "removed"
    assert ladder(Verdict("cannot-tell", "", rung="reproduced"), dose_p=0.001) == "reproduced"


def test_runs_that_end_early_are_not_counted_before_their_turn() -> None:
    """Of 32 runs side by side three crash first; the 29 that still run have lower seeds among them."""
    ended_so_far = {seed: Outcome(seed, None, True) for seed in (4, 9, 11)}
    assert in_order(ended_so_far, running={0, 1, 2, 3, 5}) == []
    assert [one.seed for one in in_order(ended_so_far, running={10, 12})] == [4, 9]
    assert [one.seed for one in in_order(ended_so_far)] == [4, 9, 11]


def test_repeats_that_crashed_are_not_forgotten() -> None:
    found = decide(broke(*[True] * 4), broke(*[False] * 4), SYMPTOM)
    assert heed_crashes(found, 1).answer == "confirmed"
    assert heed_crashes(found, 2).answer == "cannot-tell"
    assert "2 of 6 repeats with the change crashed" in heed_crashes(found, 2).why
