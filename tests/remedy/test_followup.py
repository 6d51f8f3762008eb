"""The next run against its plan: FIXED, PARTIAL, OPEN, REFUTED, not yet; promises kept and broken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from judged_as import judging_as
from wheeltapper import api
from wheeltapper.remedy.fix import Fix, make_fix
from wheeltapper.remedy.followup import Followup, follow_up
from wheeltapper.remedy.plan import Band, Plan, PlannedEdit, Resume
from wheeltapper.remedy.promises import promise, resumed
from wheeltapper.report.fix_view import followup_view
from wheeltapper.run.model import Run, Segment
from wheeltapper.testing import make_run

JUDGED_AS = "lr-too-high"  # what is done about it is tested here, not what the judge says

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CONFIG = "model: resnet50\nnum_classes: 100\nepochs: 100\nlr: {lr}\nopt: adamw\nsched: cosine\nwarmup_epochs: 5\nbatch_size: 256\n"
NOISE = np.random.default_rng(7).normal(0, 1, 400)


def curve(n: int, breaks: int | None = None, back: float = 0.0, lr: float = 0.0006) -> dict[str, list[float]]:
    """A hundred classes learned over some twenty epochs; from `breaks` on at chance, or a share `back` above it."""
    t = np.arange(n)
    accuracy = 60 * (1 - np.exp(-t / 12)) + 1 + 0.4 * NOISE[:n]
    loss = 4.6 - 3.0 * (1 - np.exp(-t / 12)) + 0.02 * NOISE[100 : 100 + n]
    if breaks is not None:
        broken = t >= breaks
        accuracy = np.where(broken, 1.0 + 50 * back, accuracy) + 0.02 * NOISE[:n]
        loss = np.where(broken, 4.605 - 2.5 * back, loss) + 0.004 * NOISE[200 : 200 + n]
    rate = lr * np.minimum(1, (t + 1) / 5)
    return {
        "train_loss": loss.tolist(),
        "eval_loss": (loss + 0.05).tolist(),
        "eval_top1": accuracy.tolist(),
        "lr": rate.tolist(),
    }


def run(n: int, breaks: int | None = None, *, lr: float = 0.0012, back: float = 0.0, config: bool = True) -> Run:
    text = CONFIG.format(lr=lr) if config else None
    return make_run(curve(n, breaks, back, lr), clock="epoch", config=text, facts={"total_epochs": 100}, name="made")


def plan_for_made() -> Plan:
    """A plan as `fix` writes it, with the edit named by hand: `made.yaml` is no framework's file."""
    ill = api.judge(run(40, 12))
    assert ill.verdict == "ill"
    fix: Fix = make_fix(ill, wanted="lr-too-high")  # whichever cause leads: the follow-up is what is tested
    assert fix.plan is not None
    assert [e.knob for e in fix.plan.edits] == ["optimizer.lr"]
    return fix.plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_for_made()


def followed(new: Run, plan: Plan) -> Followup:
    return follow_up(api.judge(new), plan)


def status(result: Followup) -> str:
    (issue,) = result.issues
    return issue.status


def test_gone_with_the_edit_made_is_fixed(plan: Plan) -> None:
    result = followed(run(100, lr=0.0006), plan)
    assert status(result) == "FIXED"
    assert result.edits[0].made is True
    assert not result.fresh
    assert "optimizer.lr is 0.0006" in result.issues[0].why
    assert "it was there from epoch 12 on" in result.issues[0].why


def test_back_at_the_same_place_with_the_edit_made_is_refuted(plan: Plan) -> None:
    result = followed(run(60, 12, lr=0.0006), plan)
    assert status(result) == "REFUTED"
    assert result.outcome == "broken"
    assert any("--case" in line for line in result.todo)


def test_back_but_later_is_partial(plan: Plan) -> None:
    result = followed(run(80, 40, lr=0.0006), plan)
    assert status(result) == "PARTIAL"
    assert "later" in result.issues[0].why


def test_an_onset_on_another_clock_is_moved_before_it_is_compared(plan: Plan) -> None:
    """The new run counts steps, ten to an epoch: step 120 is epoch 12, and no later than it was."""
    epochs = run(60, 12, lr=0.0006)
    series = {
        name: replace(s, clock="step", at=10 * s.at, clocks={"epoch": s.at.copy()}) for name, s in epochs.series.items()
    }  # fmt: skip
    result = followed(replace(epochs, series=series), plan)
    assert status(result) == "REFUTED"
    assert "there again at 12 (in the old run at 12)" in result.issues[0].why


def test_back_at_the_same_place_but_better_is_partial(plan: Plan) -> None:
    """It collapses again, to a fifth of the way up instead of chance: the direction is right."""
    result = followed(run(60, 12, lr=0.0006, back=0.2), plan)
    assert status(result) == "PARTIAL"
    assert "there again at 12, but weaker: " in result.issues[0].why
    assert not result.issues[0].dose
    assert any("not enough" in line and "--case" in line for line in result.todo)


def test_better_within_noise_is_refuted(plan: Plan) -> None:
    assert status(followed(run(60, 12, lr=0.0006, back=0.001), plan)) == "REFUTED"


def test_the_sign_gone_but_the_promise_broken_is_partial(plan: Plan) -> None:
    """It no longer collapses, and ends at a third of what the old run had reached before it broke."""
    new = curve(100)
    slow = np.asarray(new["eval_top1"])
    new["eval_top1"] = (1 + (slow - 1) / 5).tolist()
    made = make_run(new, clock="epoch", config=CONFIG.format(lr=0.0006), facts={"total_epochs": 100})
    result = followed(made, plan)
    assert status(result) == "PARTIAL"
    assert "the promise is not kept" in result.issues[0].why


def test_the_sign_gone_and_the_score_worse_is_refuted(plan: Plan) -> None:
    """The old run ended at its best here; the new one has no collapse, and a tenth of the score."""
    worse = msgspec.structs.replace(
        plan, levels=tuple(msgspec.structs.replace(v, value=60.0) if v.better == "up" else v for v in plan.levels)
    )
    new = curve(100)
    new["eval_top1"] = (1 + (np.asarray(new["eval_top1"]) - 1) / 10).tolist()
    made = make_run(new, clock="epoch", config=CONFIG.format(lr=0.0006), facts={"total_epochs": 100})
    (issue,) = followed(made, worse).issues
    assert issue.status == "REFUTED"
    assert "worse than it was: val/accuracy" in issue.why


def test_without_the_edit_nothing_is_proved(plan: Plan) -> None:
    broken, sound = followed(run(60, 12), plan), followed(run(100), plan)
    assert status(broken) == "OPEN"
    assert status(sound) == "OPEN"
    assert "not made" in broken.issues[0].why
    assert "something else changed it" in sound.issues[0].why
    assert result_says_to_start_again(broken)


def result_says_to_start_again(result: Followup) -> bool:
    return any("0.0006" in line for line in result.todo)


def test_an_edit_that_was_undone_proves_nothing(plan: Plan) -> None:
    """The settings have half the rate and the log has the old one: a resume brought it back."""

    def with_old_rate(n: int, breaks: int | None) -> Followup:
        series = curve(n, breaks, lr=0.0012)
        made = make_run(series, clock="epoch", config=CONFIG.format(lr=0.0006), facts={"total_epochs": 100})
        return followed(made, plan)

    for result in (with_old_rate(60, 12), with_old_rate(100, None), with_old_rate(30, 12)):
        assert status(result) == "OPEN"
        assert result.issues[0].undone
        assert "the old one at each of" in result.issues[0].why
        assert "load only the weights" in result.todo[0]
    assert status(with_old_rate(14, None)) == "NOT YET", "too early to say so"


def test_too_early_is_not_yet(plan: Plan) -> None:
    result = followed(run(14, lr=0.0006), plan)
    assert status(result) == "NOT YET"
    assert result.outcome == "not yet"
    assert any(p.status == "not yet" for p in result.promises)


def test_a_finished_run_is_judged_however_late_the_plan_looks(plan: Plan) -> None:
    """A rate cut to a twenty-fifth moves the place where the old trouble would come past the end of the run."""
    (issue,) = [issue for issue in plan.issues if issue.how != "open"]
    late = tuple(msgspec.structs.replace(sign, by=412.0) for sign in issue.signs)
    far = msgspec.structs.replace(plan, issues=(msgspec.structs.replace(issue, signs=late),), expected=())
    assert status(followed(run(60, lr=0.0006), far)) == "NOT YET"
    assert status(followed(run(100, lr=0.0006), far)) == "FIXED"


def test_a_run_that_does_not_tell_its_settings_proves_nothing(plan: Plan) -> None:
    assert status(followed(run(100, config=False), plan)) == "NOT YET"


def test_the_old_run_is_not_taken_for_the_new_one(plan: Plan) -> None:
    result = followed(run(40, 12), plan)
    assert status(result) == "OPEN"
    assert "Give the next run" in result.todo[0]
    assert (result.stale, result.promises, result.warnings) == (True, (), ()), "it was never to keep them"


def test_promises_are_held_against_numbers(plan: Plan) -> None:
    kept = {p.what: p for p in followed(run(100, lr=0.0006), plan).promises}
    assert kept
    scores = [p for what, p in kept.items() if what.startswith("val/accuracy")]
    assert {p.status for p in scores} == {"kept"}
    broken = followed(run(100, 12, lr=0.0006), plan).promises
    assert {p.status for p in broken if p.what.startswith("val/accuracy")} == {"broken"}
    assert all(p.saw for p in broken)


def test_new_trouble_is_said(plan: Plan) -> None:
    new = curve(60)
    new["train_loss"] = [*new["train_loss"][:30], *([float("nan")] * 30)]
    made = make_run(new, clock="epoch", config=CONFIG.format(lr=0.0006), facts={"total_epochs": 100})
    result = followed(made, plan)
    assert any("finite" in line for line in result.fresh)
    assert result.warnings, "the plan asked to look at once"
    assert result.outcome == "broken"


def test_a_defect_of_the_code_is_open_while_the_code_is_as_it_was() -> None:
    case = EXAMPLES / "cases" / "000-edm-prior"
    with judging_as("accumulation-not-done"):
        plan = api.fix(case).plan
        assert plan is not None
        other = follow_up(api.judge(api.read(case)[0]), plan)
    assert [i.status for i in other.issues] == ["OPEN"]


@pytest.mark.parametrize(("starts", "saw"), [((0.0, 1090.0), "kept"), ((0.0, 1150.0), "broken"), ((850.0,), "broken")])
def test_a_resume_begins_a_log_interval_after_its_checkpoint_at_most(
    starts: tuple[float, ...], saw: str, plan: Plan
) -> None:
    asked = msgspec.structs.replace(plan, option="C", resume=Resume("ck.pt", 1000.0, "step"))
    made = make_run({"train_loss": [1.0] * 2000}, start=starts[0])
    launches = tuple(Segment(1, "step", start, 3000.0, "resume", "a.log", 1, "it says so") for start in starts[1:])
    (check,) = resumed(replace(made, segments=launches), asked)
    assert check.status == saw


@pytest.mark.parametrize(("start", "status"), [(13, "kept"), (0, "broken")])
def test_a_resume_is_looked_for(start: int, status: str, plan: Plan) -> None:
    going_on = msgspec.structs.replace(plan, option="C", resume=Resume("ck_12.pt", 12.0, "epoch"))
    whole = run(60, lr=0.0006)
    cut = replace(whole, series={name: s.where(s.at >= start) for name, s in whole.series.items()})
    check = next(p for p in followed(cut, going_on).promises if p.what.startswith("continues"))
    assert check.status == status


def test_what_else_changed_is_said_and_weakens_the_proof(plan: Plan) -> None:
    text = CONFIG.format(lr=0.0006).replace("batch_size: 256", "batch_size: 1024")
    new = make_run(curve(100), clock="epoch", config=text, facts={"total_epochs": 100})
    result = followed(new, plan)
    assert result.also == ("batch.per_device: 256 → 1024",)
    assert "not proved which one did it" in result.issues[0].why
    assert "batch.per_device: 256 → 1024 changed beside the plan" in result.todo[0]
    assert not any("fulfilled" in line for line in result.todo)
    alone = followed(run(100, lr=0.0006), plan)
    assert alone.also == ()
    assert alone.todo == ("Nothing: the plan is fulfilled.",)


def test_a_promise_is_looked_for_near_its_place_and_a_median_is_called_one() -> None:
    scores = [10.0, 20.0, 30.0, 35.0, 40.0]
    sparse = make_run({"eval_top1": scores}, clock="epoch", at=[20, 40, 60, 80, 100])
    (name,) = sparse.series
    band = Band(name, "epoch", 100.0, "x", low=38.0, within=20.0)
    told = promise(sparse, band, True)
    assert (told.status, told.saw) == ("kept", "40 at 100"), "an earlier evaluation is another stage of training"
    dense = make_run({"eval_top1": [0.0] * 97 + [38.0, 39.0, 90.0]}, clock="epoch", start=1)
    inside = msgspec.structs.replace(band, at=99.0, within=1.0)
    assert promise(dense, inside, True).saw == "39, the median of 98 to 100"
    assert promise(dense, msgspec.structs.replace(band, at=9.0, within=1.0), True).saw == "0, the median of 8 to 10"
    assert promise(dense, msgspec.structs.replace(band, metric="val/bleu"), True).saw == "it is not logged"
    assert promise(dense, msgspec.structs.replace(band, clock="step"), True).saw == "it is not logged by step"
    at_end = promise(dense, msgspec.structs.replace(band, at=100.0, within=1.0), True)
    assert at_end.saw == "38, the median of 96 to 100", "a twentieth of the way back, and no further"


def test_edits_of_plain_keys_and_keys_taken_out_are_looked_for(plan: Plan) -> None:
    edits = (PlannedEdit("sched.eta_min", "1e-6", 1e-6, "x"), PlannedEdit("clip_max", 1.0, None, "x"))
    asked = msgspec.structs.replace(plan, edits=edits)
    good = make_run(curve(40), clock="epoch", config="sched:\n  eta_min: 1.0e-6\n")
    assert [e.made for e in followed(good, asked).edits] == [True, True]
    bad = make_run(curve(40), clock="epoch", config="sched:\n  eta_min: 1e-6\nclip_max: 1.0\n")
    assert [e.made for e in followed(bad, asked).edits] == [False, False]
    silent = make_run(curve(40), clock="epoch")
    assert [e.made for e in followed(silent, asked).edits] == [None, None]


def test_an_open_verdict_is_said_once_and_is_not_called_ill(plan: Plan) -> None:
    noise = make_run({"train/loss": (2 + 0.01 * NOISE[:5]).tolist()}, config=CONFIG.format(lr=0.0006))
    result = followed(noise, msgspec.structs.replace(plan, issues=(), expected=(), contingencies=()))
    assert result.verdict == "cannot-tell"
    assert followup_view(result).told.count("Cannot tell") == 1
    assert "not sound" not in " ".join(result.todo)
