"""The plan: what is chosen, why, and what is refused before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from trial_toy import FakeEngine, toy_run

from wheeltapper import api
from wheeltapper.errors import InputError
from wheeltapper.finding import Edit, Finding
from wheeltapper.judge.model import Diagnosis
from wheeltapper.reading.record import Checkpoint
from wheeltapper.testing import make_run
from wheeltapper.trial import design
from wheeltapper.trial.arms import Wish
from wheeltapper.trial.driver import start_trial
from wheeltapper.trial.plan import make_plan, plan_from, plan_object

JUDGED_AS = "lr-too-high"  # what is done about it is tested here, not what the judge says

COMMAND = "python train.py --config {config} --out {out}"


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_run(tmp_path_factory.mktemp("toy") / "exp1")


@pytest.fixture(scope="module")
def diagnosis(run_folder: Path) -> Diagnosis:
    return api.diagnose(run_folder)[0]


def test_the_plan_of_the_toy(run_folder: Path) -> None:
    plan = api.plan_trial(run_folder, COMMAND)
    assert [arm.id for arm in plan.arms] == ["control", "aa", "lr-too-high", "lr-too-high.further"]
    assert plan.rule.kind == "symptom"
    assert plan.rule.symptom == "not-finite"
    assert plan.rule.metric == "val/loss"
    assert plan.seeds[0] == 7
    assert plan.seed_way == "by seed in config.yaml:2"
    assert plan.fork.path is None
    assert plan.cost.fewest <= plan.cost.most
    assert plan_from(plan_object(plan)) == plan


def test_a_sound_run_has_no_cause_to_try(tmp_path: Path) -> None:
    sound = toy_run(tmp_path / "ok", lr=0.3)
    with pytest.raises(InputError, match="sound"):
        api.plan_trial(sound, COMMAND, Wish(sets=("lr-too-high:optimizer.lr=0.1",)))


def test_what_a_change_does_can_be_measured_on_a_sound_run(tmp_path: Path) -> None:
    sound = toy_run(tmp_path / "ok", lr=0.3)
    plan = api.plan_trial(sound, COMMAND, Wish(sets=("optimizer.lr=0.29",)))
    assert plan.rule.kind == "difference"
    assert plan.rule.symptom == ""
    assert any("not that it is the cause" in note for note in plan.notes)
    books = start_trial(plan, tmp_path / "t", FakeEngine())
    assert books.verdicts["optimizer.lr=0.29"].answer == "refuted"


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (Wish(causes=("lr-too-hihg",)), "not among the causes"),
        (Wish(sets=("optimizer.lr",)), "not of the form"),
        (Wish(sets=("optimizer.lr=fast",)), "not a number"),
        (Wish(sets=("optimizer.lr=2.3",)), "already"),
        (Wish(sets=("optimizer.lr=1", "optimizer.lr=1")), "same setting"),
        (Wish(metric="val/bleu"), "no series"),
        (Wish(symptom="plateau"), "does not show"),
        (Wish(config="nowhere.yaml"), "no file"),
        (Wish(cwd="/nowhere"), "no folder"),
    ],
)
def test_refused(diagnosis: Diagnosis, run_folder: Path, wish: Wish, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make_plan(diagnosis, str(run_folder), COMMAND, wish)


def test_an_edit_that_cannot_reach_the_training_is_refused(diagnosis: Diagnosis, run_folder: Path) -> None:
    with pytest.raises(InputError, match=r"takes no .config."):
        make_plan(diagnosis, str(run_folder), "python train.py --out {out}", Wish(sets=("optimizer.lr=1",)))


def test_two_remedies_that_are_one_change_are_one_arm(diagnosis: Diagnosis, run_folder: Path) -> None:
    lead = diagnosis.causes[0]
    twin = replace(lead, id="loss-scale-collapse", probability=0.4)
    plan = make_plan(replace(diagnosis, causes=(lead, twin)), str(run_folder), COMMAND, Wish())
    assert {arm.cause for arm in plan.tried} == {"lr-too-high"}
    assert any("cannot tell them apart" in why for _, why in plan.left)


def test_config_is_the_launch_script_or_the_settings_as_the_command_says(tmp_path: Path) -> None:
    folder = toy_run(tmp_path / "exp1")
    (folder / "run.sh").write_text("#!/bin/bash\npython train.py --config config.yaml --seed 7\n", encoding="utf-8")
    plan = api.plan_trial(folder, COMMAND)
    assert plan.command.config == str(folder / "config.yaml")
    plan = api.plan_trial(folder, "bash {config}", Wish(sets=("run.seed=8",)))
    assert plan.command.config == str(folder / "run.sh")


def test_without_a_symptom_the_metric_alone_is_compared(run_folder: Path) -> None:
    plan = api.plan_trial(run_folder, COMMAND, Wish(sets=("optimizer.lr=1",), symptom="none"))
    assert (plan.rule.kind, plan.rule.symptom) == ("difference", "")


def test_half_the_dose_lies_between(run_folder: Path) -> None:
    plan = api.plan_trial(run_folder, COMMAND, Wish(causes=("lr-too-high",), dose=True))
    half = plan.arm("lr-too-high.half").edits[0].new
    assert 1.15 < half < 2.3


def test_the_fork_lies_before_the_first_sign(diagnosis: Diagnosis) -> None:
    saved = tuple(Checkpoint(f"c{at}.pt", float(at), kinds=("raw", "optimizer")) for at in (5, 50, 100, 180))
    weights = Checkpoint("w.pt", 9.0, kinds=("raw",))
    late = replace(diagnosis, run=replace(diagnosis.run, checkpoints=(*saved, weights)))
    late = replace(late, findings=tuple(f for f in late.findings if f.id == "not-finite"))
    fork = design.choose_fork(late, "step", (), can_resume=True)
    assert fork.path == "c100.pt"
    assert "150" in fork.why
    assert design.choose_fork(late, "step", (), can_resume=False).path is None
    warm = design.choose_fork(late, "step", (Edit("schedule.warmup", 20, 40),), can_resume=True)
    assert warm.path is None
    assert "first step" in warm.why
    by_epochs = make_run({"train/loss": [1.0] * 200}, steps_per_epoch=10)
    found = Finding("declined-after-peak", "", "ill", "is-p", series="train/loss", clock="epoch", onset=6.0)
    counted = replace(late, run=replace(by_epochs, checkpoints=saved), findings=(found,))
    assert design.choose_fork(counted, "step", (), can_resume=True).path == "c50.pt"  # epoch 6 is step 60
    only_weights = replace(late, run=replace(late.run, checkpoints=(weights,)))
    assert design.choose_fork(only_weights, "step", (), can_resume=True).path is None


def test_an_arm_is_no_longer_than_it_must_be(tmp_path: Path) -> None:
    early = api.diagnose(toy_run(tmp_path / "wild", lr=9.0))[0]
    plan = make_plan(early, str(tmp_path / "wild"), COMMAND, Wish(causes=("lr-too-high",)))
    onset = next(f.onset for f in early.findings if f.id == plan.rule.symptom)
    assert onset is not None
    assert 2 * onset <= plan.length < 200
    assert plan.cut
    assert not plan.whole


def test_not_yet_learned_is_not_cut_short(diagnosis: Diagnosis) -> None:
    rule = design.choose_rule(None, diagnosis.run.series["val/loss"], arms=1, alpha=0.05, repeats=None, delta=None)
    chance = replace(rule, kind="symptom", symptom="at-chance")
    fork = design.choose_fork(diagnosis, "step", (), can_resume=False)
    assert design.choose_length(diagnosis, chance, "step", 200.0, fork, (), None)[0] == 200


def test_repeats_are_followed_on_the_clock_of_their_own_rows(diagnosis: Diagnosis) -> None:
    """Steps that only the checkpoints of the original tell are in no repeat that kept none."""
    rows = make_run({"val/accuracy": [10.0] * 36}, clock="epoch", start=1.0)
    by_epochs = replace(diagnosis, run=rows, progress=replace(diagnosis.progress, clock="step", at=288.0))
    assert design.choose_clock(by_epochs, rows.series["val/accuracy"]) == ("epoch", 36.0)
    assert design.choose_clock(diagnosis, diagnosis.run.series["val/loss"]) == ("step", 200.0)


def test_a_change_may_be_named_by_the_key_of_the_config(run_folder: Path) -> None:
    plan = api.plan_trial(run_folder, COMMAND, Wish(sets=("lr=0.2",), dose=True))
    assert next((e.knob, e.new) for arm in plan.tried for e in arm.edits) == ("optimizer.lr", 0.2)
    assert [arm.kind for arm in plan.arms] == ["control", "aa", "remedy", "dose"]
