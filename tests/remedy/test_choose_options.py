"""Which remedies are used and which are not; the three ways on and what they cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wheeltapper import api
from wheeltapper.errors import InputError
from wheeltapper.finding import Edit, Evidence, Finding, Place, Remedy
from wheeltapper.judge.best import best_checkpoint
from wheeltapper.judge.model import BestCheckpoint, Diagnosis, RankedCause
from wheeltapper.reading.record import Points, Reading
from wheeltapper.remedy.case_file import Attempt, CaseFile, Verdict
from wheeltapper.remedy.choose import choose
from wheeltapper.remedy.fix import make_fix
from wheeltapper.remedy.options import options_of
from wheeltapper.remedy.pace import pace_of
from wheeltapper.remedy.resumes import resume_test
from wheeltapper.run.merge import merge
from wheeltapper.run.model import Checkpoint, Run
from wheeltapper.run.onsets import position
from wheeltapper.study import Study
from wheeltapper.testing import make_run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CONFIG = "lr: 0.1\nwarmup_epochs: 5\nepochs: 100\nbatch_size: 64\nweight_decay: 0.1\nclip_grad: 1.0\n"
LOSS = [*np.linspace(4.0, 1.0, 30), *([9.0] * 20)]


def run(**more: object) -> Run:
    made = make_run(
        {"train_loss": LOSS}, clock="epoch", config=CONFIG, facts={"total_epochs": 100, "steps_per_epoch": 10}
    )
    return replace(made, **more)  # type: ignore[arg-type]


DIVERGED = Finding("diverged", "the loss rose", "ill", "is-p", "train/loss", "epoch", 30.0)


def cause(id_: str, p: float, *remedies: Remedy, grade: str = "suspected") -> RankedCause:
    return RankedCause(id_, id_, p, grade, ("diverged",), remedies=remedies, trial="fork it")  # type: ignore[arg-type]


def diagnosis(
    *causes: RankedCause, of: Run | None = None, findings: tuple[Finding, ...] = (DIVERGED,), **more: object
) -> Diagnosis:
    real = api.judge(run())
    return replace(
        real, run=of or run(), verdict="ill", causes=causes, findings=findings, best=None, validity=(), **more
    )  # type: ignore[arg-type]


HALVE = Remedy("Halve the rate.", (Edit("optimizer.lr", 0.1, 0.05),), "try", "it passes")
DECAY = Remedy("Less decay.", (Edit("optimizer.weight_decay", 0.1, 0.01),), "try", "it moves")
BY_HAND = Remedy("Mend the loop.", (), "safe", "it ends")
ADVICE = Remedy("Think.", (Edit("optimizer.lr", 0.1, 0.01),), "advice")


def test_a_likely_cause_is_applied_and_a_suspected_one_waits_for_its_trial() -> None:
    choice = choose(diagnosis(cause("lr-too-high", 0.7, HALVE), cause("weight-decay-too-strong", 0.2, DECAY)))
    assert [(t.cause, t.how) for t in choice.treatments] == [
        ("lr-too-high", "apply"),
        ("weight-decay-too-strong", "open"),
    ]
    assert [e.knob for e in choice.edits] == ["optimizer.lr"]
    assert any("two changes at once" in item.why for item in choice.left)


def test_advice_is_never_applied() -> None:
    choice = choose(diagnosis(cause("lr-too-high", 0.99, ADVICE, grade="is-p")))
    assert not choice.edits
    assert "never applied" in choice.left[0].why


def test_a_pinned_knob_drops_the_remedy_and_the_next_is_offered() -> None:
    both = cause("lr-too-high", 0.9, HALVE, DECAY)
    choice = choose(diagnosis(both), keep=["lr"])
    assert [e.knob for e in choice.edits] == ["optimizer.weight_decay"]
    assert choice.left[0].why == "you keep optimizer.lr"
    assert choose(diagnosis(both), keep=["optimizer"]).edits == ()


def test_a_knob_is_pinned_by_the_users_own_key_as_well() -> None:
    clip = Remedy("Clip less.", (Edit("clip.norm", 1.0, 5.0),), "try", "")
    found = diagnosis(cause("clip-too-small", 0.9, clip))
    assert choose(found).edits
    assert not choose(found, keep=["clip_grad"]).edits


@pytest.mark.parametrize(
    "name", ["gradient-clip", "grad_clip", "gradient_clipping", "CLIP-grad", "clip.norm", "max-grad-norm"]
)
def test_a_knob_is_pinned_by_what_programs_usually_call_it(name: str) -> None:
    clip = Remedy("Clip less.", (Edit("clip.norm", 1.0, 5.0),), "try", "")
    found = diagnosis(cause("clip-too-small", 0.9, clip), cause("lr-too-high", 0.3, HALVE))
    choice = choose(found, keep=[name])
    assert "clip.norm" not in [e.knob for e in choice.edits]
    assert choice.kept == "you keep clip.norm"


def test_dashes_and_underscores_are_one() -> None:
    both = cause("lr-too-high", 0.9, HALVE, DECAY)
    for rate in ("learning-rate", "optimizer.lr", "LR", "--lr"):
        assert [e.knob for e in choose(diagnosis(both), keep=[rate]).edits] == ["optimizer.weight_decay"]
    assert [e.knob for e in choose(diagnosis(both), keep=["weight-decay"]).edits] == ["optimizer.lr"]


def test_an_unknown_pin_names_near_ones() -> None:
    with pytest.raises(InputError, match="weight_decay"):
        choose(diagnosis(cause("lr-too-high", 0.9, HALVE)), keep=["weigth_decay"])


def test_what_would_change_nothing_is_left_out() -> None:
    same = Remedy("Set the rate.", (Edit("optimizer.lr", 0.1, 0.1),), "try")
    choice = choose(diagnosis(cause("lr-too-high", 0.9, same)))
    assert not choice.edits
    assert "already" in choice.left[0].why


def test_a_setting_that_the_code_never_reads_is_not_changed() -> None:
    unread = Finding("option-never-used", "--lr is never read", "watch", "is", places=(Place("made.yaml", 1, 5),))
    choice = choose(diagnosis(cause("lr-too-high", 0.9, HALVE), findings=(DIVERGED, unread)))
    assert not choice.edits
    assert "never reads" in choice.left[0].why
    assert choice.treatments[0].how == "code", "the value must be changed where the code sets it"


def test_a_key_that_does_not_exist_is_not_invented() -> None:
    odd = Remedy("Slower.", (Edit("curriculum.steps", None, 100),), "try")
    choice = choose(diagnosis(cause("curriculum-too-hard", 0.9, odd)))
    assert not choice.edits
    assert choice.left


def test_two_causes_do_not_set_one_knob_to_two_values() -> None:
    raise_ = Remedy("Raise it.", (Edit("optimizer.lr", 0.1, 1.0),), "try")
    choice = choose(diagnosis(cause("lr-too-high", 0.6, HALVE), cause("lr-too-low", 0.6, raise_)))
    assert [e.new for e in choice.edits] == [0.05]
    assert any("a likelier cause sets" in item.why for item in choice.left)


def test_a_refuted_cause_is_not_offered_again() -> None:
    found = diagnosis(cause("lr-too-high", 0.9, HALVE), cause("weight-decay-too-strong", 0.05, DECAY))
    choice = choose(found, refuted={"lr-too-high": "exp2: there again"})
    assert all(t.cause != "lr-too-high" for t in choice.treatments)
    assert "refuted" in choice.left[0].why


def test_no_try_beside_a_broken_evaluation() -> None:
    found = diagnosis(cause("eval-broken", 0.61, BY_HAND), cause("weight-decay-too-strong", 0.3, DECAY))
    choice = choose(found)
    assert not choice.edits
    assert "evaluation is mended first" in choice.left[0].why


def test_a_sound_run_has_nothing_to_fix() -> None:
    fix = make_fix(replace(diagnosis(), verdict="sound"))
    assert (fix.state, fix.plan, fix.edited) == ("nothing", None, ())


def saved(*epochs: int, kinds: tuple[str, ...] = ("raw", "optimizer")) -> tuple[Checkpoint, ...]:
    return tuple(Checkpoint(f"ck_{e}.pt", epoch=float(e), kinds=kinds) for e in epochs)


def test_resume_takes_the_last_checkpoint_before_the_onset() -> None:
    decay = Remedy("Bigger batch.", (Edit("batch.per_device", 64, 128),), "try", "it passes")
    found = diagnosis(cause("batch-norm-small-batch", 0.9, decay), of=run(checkpoints=saved(10, 20, 28, 40)))
    option = options_of(found, choose(found))[2]
    assert option.possible, option.why
    assert option.checkpoint == "ck_28.pt"
    assert option.length == 72


def test_resume_is_not_open_where_the_state_brings_the_old_rate_back() -> None:
    found = diagnosis(cause("lr-too-high", 0.9, HALVE), of=run(checkpoints=saved(10, 28)))
    option = options_of(found, choose(found))[2]
    assert not option.possible
    assert "brings back the old value" in option.why


def test_resume_is_not_open_without_a_checkpoint_before_the_onset() -> None:
    late = diagnosis(cause("lr-too-high", 0.9, HALVE), of=run(checkpoints=saved(40)))
    assert "the first that lies here is of epoch 40" in options_of(late, choose(late))[2].why
    said = replace(saved(10)[0], exists=False)
    named = diagnosis(cause("lr-too-high", 0.9, HALVE), of=run(checkpoints=(said,)))
    assert "none was found on disk" in options_of(named, choose(named))[2].why


def test_the_best_checkpoint_is_corrected_for_its_choice() -> None:
    rng = np.random.default_rng(3)
    series = {"train_loss": LOSS, "val_acc": (50 + rng.normal(0, 1, 50)).tolist()}
    made = make_run(series, clock="epoch", config=CONFIG, facts={"total_epochs": 100})
    made = replace(made, checkpoints=saved(12))
    best = best_checkpoint(Study(made), [])
    assert best is not None
    best = replace(best, path="ck_12.pt", step=12.0, exists=True)
    found = replace(diagnosis(of=made), best=best)
    option = options_of(found, choose(found))[0]
    assert option.possible
    assert "equal within noise" in option.risk
    fair = float(option.risk.split("about ")[1].split(",")[0])
    assert 49.5 < fair < best.value


def test_a_file_from_after_the_onset_is_not_called_the_best() -> None:
    best = BestCheckpoint("ck_40.pt", 12.0, "val/accuracy", 50.0, "nearest", True)
    found = replace(diagnosis(of=run(checkpoints=saved(40))), best=best)
    option = options_of(found, choose(found))[0]
    assert not option.possible
    assert "after the trouble began" in option.why


def test_a_file_of_the_best_evaluation_itself_is_good_whenever_the_loss_broke() -> None:
    best = BestCheckpoint("ck_40.pt", 40.0, "val/accuracy", 50.0, "saved there", True)
    scores = {"train_loss": LOSS, "val_acc": [*np.linspace(1.0, 50.0, 41), *([10.0] * 9)]}
    made = make_run(scores, clock="epoch", config=CONFIG, facts={"total_epochs": 100})
    found = replace(diagnosis(of=replace(made, checkpoints=saved(40))), best=best)
    assert options_of(found, choose(found))[0].possible


def test_where_the_average_is_at_fault_the_raw_weights_are_what_was_learned() -> None:
    """Whatever the averaged scores say: they may all be chance, or best at the last step."""
    slower = Remedy("A shorter average.", (Edit("optimizer.weight_decay", 0.1, 0.01),), "safe", "")
    calm = Finding("val-left-behind", "the score stays", "ill", "is-p", "val/accuracy", "epoch", 5.0)
    lag = replace(cause("ema-horizon-too-long", 0.9, slower), explains=("val-left-behind",))
    made = make_run(
        {"train_loss": np.linspace(4, 1, 50).tolist(), "val_acc": [10.0] * 50}, clock="epoch", config=CONFIG,
        facts={"total_epochs": 50},
    )  # fmt: skip
    files = (*saved(10, 40, kinds=("raw", "ema", "optimizer")), *saved(49, kinds=("ema",)))
    best = BestCheckpoint("ck_49.pt", 49.0, "val/accuracy", 10.0, "best", True)
    found = replace(diagnosis(lag, of=replace(made, checkpoints=files), findings=(calm,)), best=best)
    option = options_of(found, choose(found))[0]
    assert option.possible
    assert option.checkpoint == "ck_40.pt"
    assert "raw weights" in option.todo[0]
    plan = make_fix(found, option="A").plan
    assert plan is not None
    assert {issue.how for issue in plan.issues} == {"open"}, "nothing is changed, so nothing can be confirmed"
    none = replace(found, run=replace(made, checkpoints=files[2:]))
    assert "no checkpoint is known to hold the raw weights" in options_of(none, choose(none))[0].why
    broke = replace(found, findings=(calm, DIVERGED))
    assert options_of(broke, choose(broke))[0].title == "Use the best checkpoint there is", "training broke as well"


def test_pace_is_that_of_the_wall_clock_without_pauses() -> None:
    at = np.arange(100.0)
    second = 2.0 * at
    second[50:] += 36_000  # ten hours in a queue
    points = Points("loss", np.linspace(2, 1, 100), at, "step", "a.log", np.arange(100), clocks={"second": second})
    pace = pace_of(merge([Reading("a.log", "made", points=(points,))], name="a", root="."), "step")
    assert pace is not None
    assert pace.seconds == pytest.approx(2.0)
    assert pace_of(run(), "epoch") is None


def test_weights_beside_a_state_file_are_found() -> None:
    """traiNNer saves 200.state (optimizer, schedule) and the weights in another folder."""
    (made,) = api.read(EXAMPLES / "cases" / "001-sr-degradation")
    files = (
        Checkpoint("training_states/20.state", step=20.0, kinds=("optimizer", "scheduler", "scaler")),
        Checkpoint("resume_models/net_g_20.safetensors", step=20.0, kinds=("raw",)),
    )
    edit = [Edit("batch.per_device", 8, 4)]
    alone, both = (resume_test(replace(made, checkpoints=files[:n]), files[0].path, edit)[1] for n in (1, 2))
    assert alone.ok is False
    assert both.ok is True


def test_a_suspected_cause_is_tried_only_where_it_is_likelier_than_the_rest_or_asked_for() -> None:
    proof = RankedCause("x", "x", 0.35, "suspected", ("diverged",), remedies=(HALVE,), trial="fork it")
    weak = replace(proof, id="lr-too-high", evidence=(Evidence(3.0, "it rose with the rate", "rate"),))
    found = diagnosis(weak, cause("weight-decay-too-strong", 0.2, DECAY))
    fix = make_fix(found)
    assert (fix.state, fix.edited) == ("cannot-tell", ())
    assert any("--try lr-too-high" in note for note in fix.notes)
    tried = make_fix(found, wanted="lr-too-high")
    assert (tried.state, [e.knob for e in tried.choice.edits]) == ("ready", ["optimizer.lr"])
    assert "a try" in tried.headline
    other = make_fix(found, wanted="weight-decay-too-strong")
    assert [e.knob for e in other.choice.edits] == ["optimizer.weight_decay"]
    with pytest.raises(InputError, match="not among those"):
        make_fix(found, wanted="no-such")
    even = make_fix(diagnosis(replace(weak, probability=0.55)))
    assert [(t.how, t.cause) for t in even.choice.by("try")] == [("try", "lr-too-high")]


def test_a_cause_that_no_setting_tries_is_said_so() -> None:
    """Not that no cause is sure enough: the user asked for this one."""
    found = diagnosis(cause("lr-too-high", 0.7, HALVE), cause("bad-data-from-step", 0.2, BY_HAND))
    fix = make_fix(found, wanted="bad-data-from-step")
    assert (fix.state, fix.plan) == ("cannot-tell", None)
    assert fix.headline == "No setting can try bad-data-from-step (20%); by hand: Mend the loop"
    assert fix.options[1].why == fix.headline
    kept = make_fix(found, wanted="lr-too-high", keep=["lr"])
    assert (kept.state, kept.headline) == (
        "refused",
        "Nothing is changed to try lr-too-high (70%): you keep optimizer.lr",
    )
    proof = replace(cause("weight-decay-too-strong", 0.1, DECAY), grade="is")
    beside = make_fix(replace(found, causes=(*found.causes, proof)), wanted="bad-data-from-step")
    assert (beside.state, [e.knob for e in beside.choice.edits]) == ("ready", ["optimizer.weight_decay"])
    assert any("No setting can try bad-data-from-step" in note for note in beside.notes)


def test_what_a_trial_confirmed_is_treated_as_proved() -> None:
    found = diagnosis(cause("lr-too-high", 0.2, HALVE), cause("weight-decay-too-strong", 0.3, DECAY))
    assert not choose(found).edits
    choice = choose(found, confirmed={"lr-too-high"})
    assert [(t.cause, t.how, t.proved) for t in choice.treatments if t.edits] == [("lr-too-high", "apply", True)]
    case = CaseFile(1, "a", (Attempt("trial", "d", "r", "h", verdicts=(Verdict("lr-too-high", "CONFIRMED"),)),))
    assert case.confirmed == {"lr-too-high"}


def test_a_trial_beside_the_run_needs_no_case_file() -> None:
    """Its verdict is among the evidence of the diagnosis."""
    yes, no = (Evidence(bits, f"a trial said {bits}", "trial") for bits in (4.2, -4.2))
    weak = cause("lr-too-high", 0.2, HALVE)
    found = diagnosis(replace(weak, evidence=(*weak.evidence, yes)), cause("weight-decay-too-strong", 0.3, DECAY))
    fix = make_fix(found)
    assert [(t.cause, t.how, t.proved) for t in fix.choice.treatments if t.edits] == [("lr-too-high", "apply", True)]
    assert "not proved" not in fix.headline
    strong = cause("lr-too-high", 0.7, HALVE)
    refused = choose(diagnosis(replace(strong, evidence=(no,))))
    assert not refused.edits
    assert refused.left[0].why == "a trial said -4.2"


@pytest.mark.parametrize(("equal", "noise", "told"), [(1, 0.5, "one"), (4, None, "one"), (4, 0.5, "among 4")])
def test_luck_is_told_where_several_evaluations_were_as_good(equal: int, noise: float | None, told: str) -> None:
    best = BestCheckpoint("ck_12.pt", 12.0, "val/accuracy", 50.0, "best", True, noise=noise, equal=equal)
    made = make_run({"val_acc": [50.0] * 20}, clock="epoch", config=CONFIG)
    found = replace(diagnosis(of=replace(made, checkpoints=saved(12)), findings=()), best=best)
    assert told in options_of(found, choose(found))[0].risk


@pytest.mark.parametrize(("clock", "step", "epoch"), [("step", 30.0, 5.0), ("step", None, 3.0), ("epoch", 30.0, None)])
def test_a_checkpoint_is_placed_by_the_length_of_an_epoch(clock: str, step: float | None, epoch: float | None) -> None:
    assert position(Checkpoint("c.pt", step, epoch), clock, run()) == (30.0 if clock == "step" else 3.0)


def test_what_a_resume_takes_is_told_in_hours() -> None:
    bigger = Remedy("Bigger batch.", (Edit("batch.per_device", 64, 128),), "try", "it passes")
    made = run(checkpoints=saved(28))
    timed = {name: replace(s, clocks={**s.clocks, "second": 3600.0 * s.at}) for name, s in made.series.items()}
    found = diagnosis(cause("batch-norm-small-batch", 0.9, bigger), of=replace(made, series=timed))
    option = options_of(found, choose(found))[2]
    assert (option.length, option.hours) == (72, pytest.approx(72.0))
