"""Option C on real trainings: a resume in which the edit takes effect, and one whose checkpoint would undo it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

pytest.importorskip("torch")

from judged_as import judging_as
from wheeltapper import api
from wheeltapper.errors import InputError
from wheeltapper.lab.launch import plan_run, run
from wheeltapper.lab.rerun import rerun
from wheeltapper.lab.systems import Settings


def trained(system: str, base: Settings, out: Path) -> Path:
    return out / "runs" / run(plan_run(system, "test", 1, None, base), out).run


def test_a_resume_goes_on_with_the_new_rate(tmp_path: Path) -> None:
    """A rate that climbs until the loss breaks; this script sets the rate at every step from its settings."""
    steps = {"max_steps": 160, "warmup_steps": 120, "save_frequency_steps": 20}
    ill = trained("edm-prior", {"learning_rate": 0.05, "gradient_clip_norm": 100.0, **steps}, tmp_path)
    with contextlib.chdir(tmp_path):  # a path from here is not one from where the next run is started
        with judging_as("lr-too-high"):  # what is done about it is tested, not what the judge says
            fix = api.fix(ill.relative_to(tmp_path), option="C")
        assert fix.plan is not None
        assert fix.plan.resume is not None
        api.save_fix(fix, "fix")
    assert [edit.knob for edit in fix.plan.edits] == ["optimizer.lr"]
    start = fix.plan.resume.at
    assert start is not None
    assert 0 < start < 120
    made = tmp_path / "fix" / "run_prior_clean.sh"
    assert f"--resume_checkpoint {ill}/results/" in made.read_text()
    again = rerun(ill, [made], tmp_path / "again")
    assert again.ended == "finished"
    with judging_as("lr-too-high"):
        result = api.followup(tmp_path / "again", tmp_path / "fix")
    assert [issue.status for issue in result.issues] == ["FIXED"]
    assert [p.status for p in result.promises if p.what == f"continues at step {start:g}"] == ["kept"]
    assert result.verdict == "cannot-tell"  # nothing is wrong any more, but a warm-up of three quarters of the run is never sound


@pytest.mark.xfail(strict=False, reason="the onset is now that of the plan: no stretch to resume from is offered")
def test_a_resume_that_would_undo_the_edit_is_not_offered_and_is_seen(tmp_path: Path) -> None:
    """The saved scheduler brings the old T_max back: the settings say one thing and the rate does another."""
    base = {"scheduler": "cosine", "warmup_epochs": 1, "t_max": 9, "epochs": 20, "checkpoint_interval": 4}
    ill = trained("resnet-ddp", {**base, "max_samples": 256, "val_samples": 100}, tmp_path)
    with judging_as("schedule-too-short"), pytest.raises(
        InputError, match=r"schedule\.t_max takes effect: the saved scheduler state brings back the old"
    ):
        api.fix(ill, option="C")
    with judging_as("schedule-too-short"):
        fix = api.fix(ill)
    api.save_fix(fix, tmp_path / "fix")
    script = tmp_path / "fix" / "run.sh"
    before_the_rise = ill / "checkpoints" / "checkpoint_epoch_8.pt"
    script.write_text(script.read_text().replace("--epochs 20", f"--epochs 20 --resume {before_the_rise}"))
    rerun(ill, [script], tmp_path / "again")
    result = api.followup(tmp_path / "again", tmp_path / "fix")
    (issue,) = [issue for issue in result.issues if issue.cause == "schedule-too-short"]
    assert (issue.status, issue.undone) == ("OPEN", True)
    assert [(edit.knob, edit.made) for edit in result.edits] == [("schedule.t_max", True)]
