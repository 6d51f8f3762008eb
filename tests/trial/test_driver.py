"""The driver on a fake engine: right verdicts, nothing counted twice, and honest ends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from trial_toy import FakeEngine, by_config, toy_log, toy_run

from wheeltapper import api
from wheeltapper.errors import InputError
from wheeltapper.trial.arms import Wish
from wheeltapper.trial.driver import Driver, resume_trial, start_trial
from wheeltapper.trial.engines import Job
from wheeltapper.trial.ledger import Ledger, books_of, read_ledger
from wheeltapper.trial.measure import same_run
from wheeltapper.trial.model import Outcome
from wheeltapper.trial.plan import TrialPlan
from wheeltapper.trial.read import causes_in, read_trial

JUDGED_AS = "lr-too-high"  # what is done about it is tested here, not what the judge says

COMMAND = "python train.py --config {config} --out {out}"


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_run(tmp_path_factory.mktemp("toy") / "exp1")


@pytest.fixture(scope="module")
def plan(run_folder: Path) -> TrialPlan:
    wish = Wish(causes=("lr-too-high",), sets=("weight-decay-too-strong:optimizer.weight_decay=0.0001",))
    return api.plan_trial(run_folder, COMMAND, wish)


def test_the_true_cause_is_confirmed_and_a_wrong_one_refuted(plan: TrialPlan, tmp_path: Path) -> None:
    engine = FakeEngine()
    books = start_trial(plan, tmp_path / "t", engine)
    assert books.verdicts["lr-too-high"].answer == "confirmed"
    assert books.verdicts["weight-decay-too-strong"].answer == "refuted"
    assert books.closed is not None
    assert books.closed["why"] == "every arm is decided"
    assert engine.closed
    assert not books.open


def test_a_decided_arm_gets_no_more_repeats(plan: TrialPlan, tmp_path: Path) -> None:
    books = start_trial(plan, tmp_path / "t", FakeEngine())
    wrong, control = books.outcomes["weight-decay-too-strong"], books.outcomes["control"]
    assert len(wrong) < len(control) <= plan.rule.most_pairs


def test_arms_differ_from_the_control_by_their_edit_alone(plan: TrialPlan, tmp_path: Path) -> None:
    seen: dict[str, dict[str, float]] = {}

    def note(job: Job, options: dict[str, float]) -> tuple[int | None, str]:
        seen[job.id] = options
        return by_config(job, options)

    start_trial(plan, tmp_path / "t", FakeEngine(note))
    control, arm = seen["control-s8"], seen["lr-too-high-s8"]
    assert control["seed"] == arm["seed"] == 8
    assert {key for key in control if control[key] != arm[key]} == {"lr"}
    assert arm["lr"] == control["lr"] / 2


def test_a_control_without_the_symptom_ends_the_trial(plan: TrialPlan, tmp_path: Path) -> None:
    books = start_trial(plan, tmp_path / "t", FakeEngine(lambda _, o: (0, toy_log(0.5, int(o["seed"])))))
    assert books.closed is not None
    assert "does not show the symptom" in books.closed["why"]
    assert not [v for v in books.verdicts.values() if v.answer == "confirmed"]
    assert len(books.outcomes["control"]) <= 3


def test_a_seed_that_does_nothing_ends_the_trial(plan: TrialPlan, tmp_path: Path) -> None:
    def deaf(job: Job, options: dict[str, float]) -> tuple[int | None, str]:
        return 0, toy_log(options["lr"], 1)

    books = start_trial(plan, tmp_path / "t", FakeEngine(deaf))
    assert books.closed is not None
    assert "seed does not reach" in books.closed["why"]
    assert not [v for v in books.verdicts.values() if v.answer == "confirmed"]
    why = books.verdicts["lr-too-high"].why
    assert "{seed}" in why
    assert "more pair" not in why


def test_a_score_that_stands_still_is_not_taken_for_a_seed_that_does_nothing() -> None:
    flat = ((1.0, 10.0), (2.0, 10.0), (3.0, 10.0))
    one, two = Outcome(1, 10.0, True, curve=flat), Outcome(2, 10.0, True, curve=flat)
    assert not same_run(one, two)  # nothing but the score is known, and it never moved
    assert not same_run(replace(one, print="a"), replace(two, print="b"))
    assert same_run(replace(one, print="a"), replace(two, print="a"))
    moving = ((1.0, 10.0), (2.0, 12.0))
    assert same_run(replace(one, curve=moving), replace(two, curve=moving))


def test_the_training_losses_of_a_repeat_are_remembered(plan: TrialPlan, tmp_path: Path) -> None:
    control = start_trial(plan, tmp_path / "t", FakeEngine()).outcomes["control"]
    assert "" not in {o.print for o in control.values()}
    assert len({o.print for o in control.values()}) == len(control)


def test_a_command_that_fails_is_told_with_its_words(plan: TrialPlan, tmp_path: Path) -> None:
    books = start_trial(plan, tmp_path / "t", FakeEngine(lambda *_: (2, "")))
    assert books.closed is not None
    assert "the control does not run" in books.closed["why"]
    failed = [r for r in read_ledger(tmp_path / "t" / "ledger.jsonl") if r["kind"] == "ended" and r.get("failed")]
    assert failed
    assert failed[0]["code"] == 2


def test_an_arm_that_crashes_is_given_up_and_the_others_go_on(plan: TrialPlan, tmp_path: Path) -> None:
    def crash(job: Job, options: dict[str, float]) -> tuple[int | None, str]:
        return (1, "") if job.id.startswith("weight") else by_config(job, options)

    books = start_trial(plan, tmp_path / "t", FakeEngine(crash))
    assert books.verdicts["lr-too-high"].answer == "confirmed"
    assert "weight-decay-too-strong" in books.abandoned
    assert "weight-decay-too-strong" not in books.verdicts


def test_lost_nodes_are_tried_again_and_counted_once(plan: TrialPlan, tmp_path: Path) -> None:
    lost: list[str] = []

    def flaky(job: Job, options: dict[str, float]) -> tuple[int | None, str]:
        if "try" not in job.id and len(lost) < 4:
            lost.append(job.id)
            return None, toy_log(options["lr"], int(options["seed"]), steps=60)
        return by_config(job, options)

    engine = FakeEngine(flaky)
    books = start_trial(plan, tmp_path / "t", engine)
    assert len(lost) == 4
    assert books.verdicts["lr-too-high"].answer == "confirmed"
    again = {job.id for job in engine.jobs if ".try2" in job.id}
    assert {f"{one}.try2" for one in lost} == again


def test_the_budget_stops_new_repeats(run_folder: Path, tmp_path: Path) -> None:
    plan = api.plan_trial(run_folder, COMMAND, Wish(causes=("lr-too-high",), budget=0.0))
    books = start_trial(plan, tmp_path / "t", FakeEngine())
    assert len(books.tries) <= 2
    assert books.verdicts.get("lr-too-high") is None or books.verdicts["lr-too-high"].answer == "cannot-tell"


@pytest.mark.xfail(strict=False, reason="the fitted judge sees other signs in the toy; the first step already confirms")
def test_half_of_far_too_much_is_still_too_much(tmp_path: Path) -> None:
    """A refuted remedy is not a refuted cause: the knob is changed further before anything is said about that."""
    folder = toy_run(tmp_path / "wild", lr=9.0)
    plan = api.plan_trial(folder, COMMAND, Wish(causes=("lr-too-high",)))
    assert plan.arm("lr-too-high.further").after == "lr-too-high"
    books = start_trial(plan, tmp_path / "t", FakeEngine())
    assert books.verdicts["lr-too-high"].answer == "refuted"
    assert books.verdicts["lr-too-high.further"].answer == "confirmed"
    assert causes_in(read_trial(tmp_path / "t"))["lr-too-high"].answer == "confirmed"


def test_the_further_step_is_not_run_where_the_first_one_helps(plan: TrialPlan, tmp_path: Path) -> None:
    engine = FakeEngine()
    start_trial(plan, tmp_path / "t", engine)
    assert not [job.id for job in engine.jobs if "further" in job.id]


def test_a_cause_in_code_is_tried_by_another_version_of_a_file(tmp_path: Path) -> None:
    folder = toy_run(tmp_path / "exp1")
    fixed = tmp_path / "fixed.py"
    text = (folder / "train.py").read_text(encoding="utf-8")
    fixed.write_text(text.replace("rate = lr *", "rate = 0.2 * lr *"), encoding="utf-8")
    command = "python train.py --config {config}"
    plan = api.plan_trial(folder, command, Wish(files=(f"zero-grad-missing:train.py={fixed}",)))
    assert plan.hashes["data"][str(fixed)]

    def by_code(job: Job, options: dict[str, float]) -> tuple[int | None, str]:
        mended = "0.2 * lr" in (Path(job.cwd) / "train.py").read_text(encoding="utf-8")
        return 0, toy_log(options["lr"] * (0.2 if mended else 1.0), int(options["seed"]))

    books = start_trial(plan, tmp_path / "t", FakeEngine(by_code))
    assert books.verdicts["zero-grad-missing"].answer == "confirmed"
    assert (folder / "train.py").read_text(encoding="utf-8") == text
    with pytest.raises(InputError, match="nothing would change"):
        api.plan_trial(folder, command, Wish(files=(f"train.py={folder / 'train.py'}",)))
    with pytest.raises(InputError, match="in a copy"):
        api.plan_trial(folder, COMMAND, Wish(files=(f"train.py={fixed}",)))


def test_a_control_that_breaks_early_does_not_shorten_the_patience_with_the_arms(
    plan: TrialPlan, tmp_path: Path
) -> None:
    with Ledger(tmp_path) as ledger:
        driver = Driver(plan, tmp_path, ledger, FakeEngine(), None)
        assert driver._whole(100.0, plan.length / 20) == pytest.approx(2000.0)
        assert driver._whole(100.0, plan.length) == 100.0
        assert driver._whole(100.0, 0.0) is None
        driver.durations = [2000.0]
        assert driver._command().timeout == 20_000.0


def test_resuming_a_finished_trial_runs_nothing(plan: TrialPlan, tmp_path: Path) -> None:
    first = start_trial(plan, tmp_path / "t", FakeEngine())
    engine = FakeEngine()
    again = resume_trial(tmp_path / "t", engine)
    assert engine.jobs == []
    assert again.verdicts == first.verdicts


@pytest.mark.parametrize("cut", [0.1, 0.35, 0.6, 0.9])
def test_a_ledger_cut_anywhere_is_resumed_to_the_same_verdicts(plan: TrialPlan, tmp_path: Path, cut: float) -> None:
    whole = start_trial(plan, tmp_path / "t", FakeEngine())
    ledger = tmp_path / "t" / "ledger.jsonl"
    data = ledger.read_bytes()
    first_line = data.index(b"\n") + 1
    ledger.write_bytes(data[: first_line + int(cut * (len(data) - first_line))])
    finished = {(arm, seed) for arm, by in books_of(list(read_ledger(ledger))).outcomes.items() for seed in by}
    engine = FakeEngine()
    books = resume_trial(tmp_path / "t", engine)
    assert {arm: v.answer for arm, v in books.verdicts.items()} == {arm: v.answer for arm, v in whole.verdicts.items()}
    run_again = {tuple(job.id.split("-s")) for job in engine.jobs}
    assert not {(arm, str(seed)) for arm, seed in finished} & run_again
    ended = [(r["job"]) for r in read_ledger(ledger) if r["kind"] == "ended" and r.get("outcome")]
    assert len(ended) == len(set(ended))


def test_a_trial_is_not_resumed_on_changed_code(plan: TrialPlan, run_folder: Path, tmp_path: Path) -> None:
    start_trial(plan, tmp_path / "t", FakeEngine())
    script = run_folder / "train.py"
    text = script.read_text(encoding="utf-8")
    try:
        script.write_text(text + "\n# edited\n", encoding="utf-8")
        with pytest.raises(InputError, match="has changed since"):
            resume_trial(tmp_path / "t", FakeEngine())
    finally:
        script.write_text(text, encoding="utf-8")


def test_a_second_driver_is_refused(plan: TrialPlan, tmp_path: Path) -> None:
    def look_again(job: Job, options: dict[str, float]) -> tuple[int | None, str]:
        with pytest.raises(InputError, match="another process"):
            resume_trial(tmp_path / "t", FakeEngine())
        return by_config(job, options)

    start_trial(plan, tmp_path / "t", FakeEngine(look_again))


def test_the_ledger_holds_what_the_result_depends_on(plan: TrialPlan, tmp_path: Path) -> None:
    start_trial(plan, tmp_path / "t", FakeEngine())
    records = list(read_ledger(tmp_path / "t" / "ledger.jsonl"))
    assert [r["kind"] for r in records[:2]] == ["plan", "session"]
    told = records[0]["plan"]
    assert told["rule"]["alpha"] == 0.05
    assert all(len(h) == 64 for h in told["hashes"]["config"].values())
    assert all(len(h) == 64 for h in told["hashes"]["code"].values())
    assert told["hashes"]["versions"]["python"]
    sent = [r for r in records if r["kind"] == "submitted"]
    hashes = {r["arm"]: r["config"] for r in sent if r["seed"] == told["seeds"][0]}
    assert hashes["control"] == hashes["aa"] != hashes["lr-too-high"]
    assert json.loads((tmp_path / "t" / "plan.json").read_text())["name"] == plan.name


def test_putting_it_back_in_later_repeats_is_a_rung(plan: TrialPlan, tmp_path: Path) -> None:
    books = start_trial(plan, tmp_path / "t", FakeEngine(slots=1))
    assert books.verdicts["lr-too-high"].rung in ("removed", "re-inserted")


def test_one_killed_control_does_not_end_the_trial(plan: TrialPlan, tmp_path: Path) -> None:
    """The system was short of memory, or somebody ended it: that says nothing about the run."""
    killed: list[str] = []

    def once(job: Job, options: dict[str, float]) -> tuple[int | None, str]:
        if job.id.startswith("control") and not killed:
            killed.append(job.id)
            return -9, ""
        return by_config(job, options)

    books = start_trial(plan, tmp_path / "t", FakeEngine(once))
    assert killed
    assert books.verdicts["lr-too-high"].answer == "confirmed"
    assert books.failures.get("control", 0) == 0
