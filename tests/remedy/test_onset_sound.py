"""Where the trouble begins and what lies surely before it: on one clock, and with nothing of the trouble in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wheeltapper import api
from wheeltapper.finding import Edit, Finding, Remedy
from wheeltapper.judge.model import Diagnosis, RankedCause
from wheeltapper.reading.record import Points, Reading
from wheeltapper.remedy.alarms import warnings
from wheeltapper.remedy.choose import Choice, choose
from wheeltapper.remedy.draft import draft
from wheeltapper.remedy.expect import Next, bands
from wheeltapper.remedy.options import onset_of, options_of
from wheeltapper.remedy.plan import Warn
from wheeltapper.run.merge import merge
from wheeltapper.run.model import Checkpoint, Run
from wheeltapper.run.onsets import began, moved, sound_until
from wheeltapper.testing import make_run

BIGGER = Remedy("Bigger batch.", (Edit("batch.per_device", 64, 128),), "try", "it passes")
CONFIG = "lr: 0.1\nepochs: 100\nbatch_size: 64\n"
NOISE = np.random.default_rng(5).normal(0, 0.01, 2000)


def two_clocks(steps: int = 1000, per_epoch: int = 100) -> Run:
    """A loss at every tenth step, which tells its epoch, and an accuracy by epochs alone."""
    at = np.arange(0.0, steps, 10)
    falling = 1 + 3 * np.exp(-at / 300) + NOISE[: len(at)]
    loss = Points("train_loss", falling, at, "step", "a.log", np.arange(len(at)), clocks={"epoch": at // per_epoch})
    epochs = np.arange(steps / per_epoch)
    score = Points("val_acc", 5 * epochs, epochs, "epoch", "a.log", np.arange(len(epochs)))
    return merged(loss, score)


def merged(*points: Points) -> Run:
    return merge([Reading("a.log", "made", points=points)], name="a", root=".")


def ill(id_: str, series: str, clock: str, onset: float) -> Finding:
    return Finding(id_, f"{id_} of {series}", "ill", "is-p", series, clock, onset)


def diagnosis(run: Run, *findings: Finding) -> Diagnosis:
    made = make_run({"train_loss": np.linspace(4, 1, 50).tolist()}, config=CONFIG, facts={"total_steps": 2000})
    cause = RankedCause(
        "x", "x", 0.9, "is-p", tuple(f.id for f in findings), remedies=(BIGGER,), trial="fork it"
    )  # fmt: skip
    return replace(
        api.judge(made), run=replace(run, configs=made.configs), verdict="ill", causes=(cause,), findings=findings,
        best=None, validity=(),
    )  # fmt: skip


def test_onsets_on_two_clocks_are_put_on_one() -> None:
    """Epoch 5 is step 500: later than step 300, though 5 is less than 300."""
    run = two_clocks()
    score, loss = ill("collapsed", "val/accuracy", "epoch", 5.0), ill("diverged", "train/loss", "step", 300.0)
    assert moved(run, score, 5.0, "step") == 500.0
    assert [(at, f.id) for at, f in began(run, (score, loss), "step")] == [(300.0, "diverged"), (500.0, "collapsed")]
    onset = onset_of(diagnosis(run, score, loss), ())
    assert (onset.at, onset.clock) == (300.0, "step")
    assert onset.words == "the onset of diverged (step 300)"
    early = onset_of(diagnosis(run, replace(score, onset=2.0), loss), ())
    assert (early.at, early.clock, early.words) == (200.0, "step", "the onset of collapsed (step 200)")


def test_signs_that_share_a_clock_stay_on_it() -> None:
    onset = onset_of(diagnosis(two_clocks(), ill("collapsed", "val/accuracy", "epoch", 5.0)), ())
    assert (onset.at, onset.clock) == (5.0, "epoch")


def test_a_sign_that_no_row_can_place_is_left_out_of_the_order() -> None:
    at = np.arange(0.0, 1000, 10)
    loss = Points("train_loss", 1 + 0 * at, at, "step", "a.log", np.arange(len(at)))
    score = Points("val_acc", np.arange(10.0), np.arange(10.0), "epoch", "a.log", np.arange(10))
    run = merged(loss, score)
    both = (ill("collapsed", "val/accuracy", "epoch", 5.0), ill("diverged", "train/loss", "step", 300.0))
    assert [f.id for _, f in began(run, both, "step")] == ["diverged"]
    onset = onset_of(diagnosis(run, *both), ())
    assert (onset.at, onset.clock) == (300.0, "step")


def test_what_lies_between_two_evaluations_is_not_known_to_be_sound() -> None:
    rows = np.arange(0.0, 1000, 10)
    loss = Points("train_loss", 1 + 3 * np.exp(-rows / 300), rows, "step", "a.log", np.arange(len(rows)))
    score = Points("val_acc", np.array([10.0, 20, 30, 1, 1]), np.arange(0.0, 1000, 200), "step", "a.log", np.arange(5))
    run = merged(loss, score)
    collapsed = ill("collapsed", "val/accuracy", "step", 600.0)
    assert sound_until(run, collapsed, "step") == 400.0
    found = diagnosis(run, collapsed)
    onset = onset_of(found, ())
    assert (onset.at, onset.sound) == (600.0, 400.0)
    assert onset.before(run.series["train/loss"].at).sum() == 41

    def resumed(*steps: int) -> tuple[str | None, str]:
        files = tuple(Checkpoint(f"{s}.pt", step=float(s), kinds=("raw", "optimizer")) for s in steps)
        one = replace(found, run=replace(found.run, checkpoints=files))
        option = options_of(one, choose(one))[2]
        return option.checkpoint, option.why

    assert resumed(200, 400, 500, 700)[0] == "400.pt"
    none, why = resumed(500, 700)
    assert none is None
    assert "no checkpoint from before the onset of collapsed (step 600) (the last row before it is of 400)" in why
    assert "the first that lies here is of step 500" in why


def test_an_untreated_trouble_before_the_treated_one_ends_the_sound_stretch() -> None:
    run = two_clocks()
    first, second = ill("diverged", "train/loss", "step", 300.0), ill("not-finite", "train/loss", "step", 600.0)
    found = diagnosis(run, first, second)
    treated = choose(replace(found, causes=(replace(found.causes[0], explains=("not-finite",)),))).treatments
    onset = onset_of(found, treated)
    assert (onset.at, onset.sound) == (600.0, 290.0)


def alarms(run: Run, *findings: Finding) -> dict[str, Warn]:
    found = diagnosis(run, *findings)
    choice: Choice = choose(found)
    following = Next(found, choice, options_of(found, choice)[1], None, ())
    return {w.metric: w for w in warnings(following, ()) if not w.not_finite}


@pytest.mark.parametrize("growth", [0, 12])
def test_rows_that_already_grow_set_no_threshold(growth: int) -> None:
    """A loss that grows for a dozen rows before it is NaN, and the gradient norm with it."""
    calm = (1 + 2 * np.exp(-np.arange(60) / 10) + NOISE[:60]).tolist()
    loss = [*calm, *(2.0**i for i in range(growth)), *([np.nan] * 20)]
    norm = [*(1 + 0.1 * NOISE[:60]), *(3.0**i for i in range(growth)), *([np.nan] * 20)]
    run = make_run({"train_loss": loss, "grad_norm": norm})
    found = alarms(run, ill("not-finite", "train/loss", "step", 60.0 + growth))
    above = found["train/loss"].above
    assert above is not None
    assert max(calm[30:]) < above < 1.5, "the later half of what was calm, and not 2048"
    assert found["grad_norm"].above == pytest.approx(2.0, abs=0.1)


def test_a_threshold_does_not_come_from_between_the_evaluations() -> None:
    """The training loss rises at once, and the score is next looked at 150 rows later."""
    loss = [*(1 + 2 * np.exp(-np.arange(250) / 40) + NOISE[:250]), *([2.9] * 250)]
    at = np.arange(500.0)
    train = Points("train_loss", np.asarray(loss), at, "step", "a.log", np.arange(500))
    score = Points(
        "val_acc", np.array([10.0, 20, 1, 1]), np.array([100.0, 200, 400, 499]), "step", "a.log", np.arange(4)
    )
    run = merged(train, score)
    above = alarms(run, ill("collapsed", "val/accuracy", "step", 400.0))["train/loss"].above
    assert above is not None
    assert above < 1.5


def next_of(run: Run, cause: str, *findings: Finding, edit: Edit | None = None) -> Next:
    found = diagnosis(run, *findings)
    remedy = replace(BIGGER, edits=(edit,)) if edit is not None else BIGGER
    found = replace(found, causes=(replace(found.causes[0], id=cause, remedies=(remedy,)),))
    choice = choose(found)
    return Next(found, choice, options_of(found, choice)[1], None, ())


def collapsing(rows: int = 100, at: int = 60) -> Run:
    t = np.arange(rows)
    good = t < at
    loss = np.where(good, 1 + 3 * np.exp(-t / 20), 4.0) + NOISE[:rows]
    score = np.where(good, 60 * (1 - np.exp(-t / 20)), 1.0) + NOISE[:rows]
    return make_run({"train_loss": loss.tolist(), "eval_loss": (loss + 0.1).tolist(), "eval_top1": score.tolist()})


@pytest.mark.parametrize(
    ("cause", "promised"),
    [
        ("lr-too-high", {"train/loss", "val/loss", "val/accuracy"}),
        ("bad-data-from-step", {"train/loss", "val/loss", "val/accuracy"}),
        ("overfitting", {"val/loss", "val/accuracy"}),
        ("accumulation-not-divided", {"val/accuracy"}),
        ("loss-terms-conflict", {"val/accuracy"}),
    ],
)
def test_a_loss_that_the_remedy_changes_is_not_held_to_its_old_values(cause: str, promised: set[str]) -> None:
    following = next_of(collapsing(), cause, ill("collapsed", "val/accuracy", "step", 60.0))
    assert {band.metric for band in bands(following)} == promised
    assert {w.metric for w in warnings(following, ()) if not w.not_finite} <= promised
    assert {series.name for series in following.judged()} == promised


def test_a_promise_lies_within_the_length_of_the_run() -> None:
    """Broken at the 95th of 100 rows, of a run whose plan is not known: a quarter more would never be seen."""
    run = replace(collapsing(100, 95), facts={})
    following = next_of(run, "lr-too-high", ill("collapsed", "val/accuracy", "step", 95.0))
    following = replace(
        following, diagnosis=replace(following.diagnosis, progress=replace(following.diagnosis.progress, total=None))
    )
    assert {band.at for band in bands(following)} == {99.0}
    at_once = next_of(run, "lr-too-high", ill("collapsed", "val/accuracy", "step", 99.0))
    total = replace(at_once.diagnosis.progress, total=None)
    assert bands(replace(at_once, diagnosis=replace(at_once.diagnosis, progress=total))) == ()


def test_no_alarm_below_what_a_share_can_be() -> None:
    t = np.arange(100)
    score = np.where(t < 60, 0.5 + t / 2, 0.4) + np.abs(40 * NOISE[:100])
    following = next_of(
        make_run({"eval_top1": score.tolist()}), "lr-too-high", ill("collapsed", "val/accuracy", "step", 60.0)
    )
    assert all(w.below is None or w.below > 0 for w in warnings(following, ()))
    low = score.copy()
    low[:60] = np.abs(NOISE[:60]) * 100
    wild = next_of(make_run({"eval_top1": low.tolist()}), "lr-too-high", ill("collapsed", "val/accuracy", "step", 60.0))
    assert warnings(wild, ()) == ()


def test_a_loss_on_its_way_to_nan_is_not_sound() -> None:
    """The NaN outdoes the sign that the loss had run away long before; no level may be taken from in between."""
    run = two_clocks()
    away = replace(ill("diverged", "train/loss", "step", 400.0), severity="watch")
    found = diagnosis(run, ill("not-finite", "train/loss", "step", 900.0))
    assert onset_of(found, ()).sound == 890.0
    found = replace(found, findings=(*found.findings, away))
    onset = onset_of(found, ())
    assert (onset.at, onset.sound) == (900.0, 390.0)


def test_an_onset_on_another_clock_is_not_called_the_start() -> None:
    """The score to look at is counted by epochs, the trouble by steps."""
    found = diagnosis(two_clocks(), ill("diverged", "train/loss", "step", 400.0))
    choice = choose(found)
    (look,) = draft(Next(found, choice, options_of(found, choice)[1], None, ()), (), "").monitoring
    assert look.look.startswith("val/accuracy at every value")
    assert look.why == "the old run broke at step 400"
