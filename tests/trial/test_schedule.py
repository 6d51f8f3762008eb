"""What is run next, by tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trial_toy import toy_run

from wheeltapper import api
from wheeltapper.trial.arms import Wish
from wheeltapper.trial.ledger import Attempt, Books
from wheeltapper.trial.model import Outcome, Verdict
from wheeltapper.trial.plan import TrialPlan
from wheeltapper.trial.schedule import next_repeat, undecided

JUDGED_AS = "lr-too-high"  # what is done about it is tested here, not what the judge says


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> TrialPlan:
    folder = toy_run(tmp_path_factory.mktemp("toy") / "exp1")
    wish = Wish(causes=("lr-too-high",), sets=("optimizer.weight_decay=0.1",), repeats=3)
    return api.plan_trial(folder, "python train.py --config {config} --out {out}", wish)


def order(plan: TrialPlan, books: Books, *, ends: bool) -> list[tuple[str, int]]:
    """Repeats in the order they are chosen; `ends`: each has an outcome before the next is chosen."""
    out = []
    while (chosen := next_repeat(plan, books)) is not None and len(out) < 60:
        arm, seed = chosen
        out.append((arm.id, seed))
        books.tries[arm.id, seed] = 1
        if ends:
            books.outcomes.setdefault(arm.id, {})[seed] = Outcome(seed, 1.0, True)
        else:
            books.open[f"{arm.id}-{seed}"] = Attempt(f"{arm.id}-{seed}", arm.id, seed, 1, "")
    return out


def test_round_by_round_with_the_control_first(plan: TrialPlan) -> None:
    told = order(plan, Books(), ends=True)
    assert told[:4] == [("control", 7), ("aa", 7), ("lr-too-high", 7), ("optimizer.weight_decay=0.1", 7)]
    assert told[4:8] == [("control", 8), ("aa", 8), ("lr-too-high", 8), ("optimizer.weight_decay=0.1", 8)]
    assert len(told) == len(set(told)) == 3 * 3 + 2


def test_no_second_round_of_an_arm_before_the_control_has_ended_once(plan: TrialPlan) -> None:
    told = order(plan, Books(), ends=False)
    assert ("lr-too-high", 7) in told
    assert ("lr-too-high", 8) not in told


def test_decided_arms_get_nothing_and_a_further_step_only_after_a_refutation(plan: TrialPlan) -> None:
    books = Books(verdicts={"lr-too-high": Verdict("confirmed", "")})
    assert [a.id for a in undecided(plan, books)] == ["optimizer.weight_decay=0.1"]
    books.verdicts["lr-too-high"] = Verdict("refuted", "")
    assert [a.id for a in undecided(plan, books)] == ["lr-too-high.further", "optimizer.weight_decay=0.1"]


def test_what_a_decided_arm_leaves_goes_to_the_others(plan: TrialPlan) -> None:
    far = replace(plan, cost=replace(plan.cost, most=20))
    books = Books(verdicts={"lr-too-high": Verdict("confirmed", "")})
    books.verdicts["optimizer.weight_decay=0.1"] = Verdict("cannot-tell", "", more=2)
    told = order(far, books, ends=True)
    assert max(seed for _, seed in told) > plan.seeds[-1]
    assert len(told) <= 20
    books.verdicts["optimizer.weight_decay=0.1"] = Verdict("cannot-tell", "", more=None)
    assert next_repeat(far, books) is None
