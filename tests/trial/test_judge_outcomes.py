"""From the books of a trial to its last word: the rungs above a removed symptom, each with what it takes."""

from __future__ import annotations

import pytest
from trial_toy import toy_run

from wheeltapper import api
from wheeltapper.trial.arms import Wish
from wheeltapper.trial.judge import bias_of, heed_crashes, rung_of
from wheeltapper.trial.ledger import Books, Record
from wheeltapper.trial.model import Answer, Outcome, Verdict
from wheeltapper.trial.plan import TrialPlan

JUDGED_AS = "lr-too-high"  # what is done about it is tested here, not what the judge says

ARM = "lr-too-high"
REMOVED = Verdict("confirmed", "it went away", 4, rung="removed")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> TrialPlan:
    folder = toy_run(tmp_path_factory.mktemp("toy") / "exp1")
    wish = Wish(causes=(ARM,), dose=True, placebo=("run.total_steps=201",))
    return api.plan_trial(folder, "python train.py --config {config} --out {out}", wish)


def runs(*values: float | None, broke: bool) -> dict[int, Outcome]:
    return {seed: Outcome(seed, value, broke) for seed, value in enumerate(values)}


def books(half: tuple[float | None, ...] = (), placebo: Answer | None = None) -> Books:
    """Four control runs that broke (a loss of nine), four mended ones (a loss of one)."""
    kept = Books()
    kept.outcomes = {"control": runs(*[9.0] * 4, broke=True), ARM: runs(*[1.0] * 4, broke=False)}
    if half:
        kept.outcomes[f"{ARM}.half"] = runs(*half, broke=False)
    if placebo is not None:
        kept.verdicts = {"run.total_steps=201": Verdict(placebo, "")}
    return kept


def told(arm: str, began: float, ended: float) -> list[Record]:
    out: list[Record] = []
    for seed in range(4):
        job = f"{arm}-{seed}"
        out.append({"kind": "submitted", "job": job, "arm": arm, "seed": seed, "at": 0.0})
        out.append({"kind": "started", "job": job, "at": began})
        out.append({"kind": "ended", "job": job, "at": ended, "outcome": {"seed": seed}})
    return out


def rung(plan: TrialPlan, kept: Books, *records: Record) -> str:
    return rung_of(plan, kept, records, plan.arm(ARM), REMOVED)


def test_it_is_put_back_only_by_control_runs_that_began_after_the_cure(plan: TrialPlan) -> None:
    assert rung(plan, books()) == "removed"
    assert rung(plan, books(), *told("control", 1.0, 2.0), *told(ARM, 3.0, 4.0)) == "removed"
    assert rung(plan, books(), *told(ARM, 1.0, 2.0), *told("control", 1.5, 4.0)) == "removed", "begun before"
    assert rung(plan, books(), *told(ARM, 1.0, 2.0), *told("control", 3.0, 4.0)) == "re-inserted"


def test_the_effect_follows_the_dose(plan: TrialPlan) -> None:
    assert plan.rule.better == "down"
    assert rung(plan, books(half=(5.0, 5.0, 5.0, 5.0))) == "dose-response"
    assert rung(plan, books(half=(0.5, 0.5, 0.5, 0.5))) == "removed", "half of it did more than the whole"
    assert rung(plan, books(half=(5.0, None, None, None))) == "removed", "one seed alone tells no order"
    assert rung(plan, books(half=(float("nan"),) * 4)) == "removed", "half of the change broke the runs"


def test_a_placebo_must_do_nothing(plan: TrialPlan) -> None:
    half = (5.0, 5.0, 5.0, 5.0)
    assert rung(plan, books(half, placebo="refuted")) == "specific"
    assert rung(plan, books(half, placebo="confirmed")) == "dose-response"
    assert rung(plan, books(placebo="refuted")) == "removed", "a placebo alone lifts nothing"


@pytest.mark.parametrize(("crashed", "answer"), [(0, "confirmed"), (1, "confirmed"), (2, "cannot-tell")])
def test_more_than_a_quarter_of_crashes_is_no_cure(crashed: int, answer: str) -> None:
    verdict = heed_crashes(REMOVED, crashed)
    assert verdict.answer == answer
    assert ("2 of 6 repeats" in verdict.why) is (crashed == 2)
    refuted = Verdict("refuted", "it stays", 4)
    assert heed_crashes(refuted, 9) == refuted


def test_rates_favour_a_side_only_where_both_logged_them() -> None:
    cooled, hot = Outcome(1, 1.0, False, rates=(0.1, 0.001)), Outcome(1, 1.0, False, rates=(0.1, 0.1))
    assert bias_of([hot], [cooled]) == "for"
    assert bias_of([cooled], [hot]) == "against"
    assert bias_of([Outcome(1, 1.0, False)], [hot]) == ""
    assert bias_of([hot], [Outcome(1, 1.0, False)]) == ""
