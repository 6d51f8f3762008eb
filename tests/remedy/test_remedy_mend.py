"""From an ill run to a sound one: diagnose, fix, train the corrected files, follow up. More in scripts/mend_lab.py."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from judged_as import judging_as
from wheeltapper import api
from wheeltapper.lab.launch import plan_run, run
from wheeltapper.lab.rerun import rerun
from wheeltapper.lab.systems import Settings

SHORT_SR = {"total_iter": 200, "T_max": 200, "milestones": [100, 150]}


@pytest.mark.parametrize(
    ("system", "fault", "base", "knob", "at_least"),
    [
        # A command line; as long as this, the healthy run has 66 %, chance is 10 %.
        ("resnet-ddp", "ema-horizon", {"epochs": 20, "warmup_epochs": 4}, "ema.decay", 55.0),
        # YAML whose number is a text: the program crashes; mended it has 30.8 dB.
        ("sr-nano", "float-as-text", SHORT_SR, "train.scheduler.eta_min", 30.0),
    ],
)
def test_a_setting_is_mended(
    system: str, fault: str, base: Settings, knob: str, at_least: float, tmp_path: Path
) -> None:
    ill = run(plan_run(system, "test", 1, fault, base), tmp_path)
    assert ill.score is None or ill.score < at_least
    folder = tmp_path / "runs" / ill.run
    cause = {"ema.decay": "ema-horizon-too-long", "train.scheduler.eta_min": "config-value-not-a-number"}[knob]
    with judging_as(cause):  # that the edit mends it is tested, not that the judge names it
        fix = api.fix(folder)
    assert fix.plan is not None
    assert fix.plan.edits[0].knob == knob
    api.save_fix(fix, tmp_path / "fix")
    again = rerun(folder, [tmp_path / "fix" / name for name in fix.plan.configs], tmp_path / "again")
    assert again.ended == "finished"
    assert again.score is not None
    assert again.score >= at_least
    with judging_as(cause):
        result = api.followup(tmp_path / "again", tmp_path / "fix")
    assert [issue.status for issue in result.issues if issue.cause == fix.plan.issues[0].cause] == ["FIXED"]
    assert result.verdict == "sound"


def test_a_config_that_the_program_refuses_is_told(tmp_path: Path) -> None:
    """The rerun takes the files as they are: a broken edit ends as it would for the user."""
    from wheeltapper.errors import InputError
    from wheeltapper.lab.truth import Truth, save

    folder = tmp_path / "runs" / "run-x"
    folder.mkdir(parents=True)
    save(tmp_path, Truth(run="run-x", system="resnet-ddp", size="test", seed=1, settings={}, kind="healthy"))
    from wheeltapper.lab.systems import system

    (folder / "train.py").write_text(system("resnet-ddp").SCRIPT.read_text())
    (folder / "run.sh").write_text("python train.py distributed --epochs 3.5\n")
    again = rerun(folder, [], tmp_path / "again")
    assert again.ended.startswith("crashed: SystemExit")
    (folder / "run.sh").write_text("python train.py distributed 'unclosed\n")
    with pytest.raises(InputError, match="does not start the program"):
        rerun(folder, [], tmp_path / "again2")
