"""A trial without options: the command is found beside the run, and the change is made where the setting lives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from journeys.travel import PROGRAMS
from wheeltapper import api
from wheeltapper.errors import InputError
from wheeltapper.finding import Edit
from wheeltapper.remedy.loads import edit_run
from wheeltapper.trial.commands import found_command, home_of, overrides
from wheeltapper.trial.protocol import Command, Setting, prepare

LOG = "epoch,train_loss,val_loss\n" + "".join(f"{i},{2.0 - i / 10},{2.1 - i / 10}\n" for i in range(8))


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copy(PROGRAMS / "plain.py", folder / "train.py")
    (folder / "metrics.csv").write_text(LOG)
    return folder


@pytest.fixture
def hydra(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    shutil.copytree(PROGRAMS / "hydra_app", folder)
    record = folder / "outputs" / "run"
    (record / ".hydra").mkdir(parents=True)
    (record / "metrics.csv").write_text(LOG)
    shutil.copy(folder / "conf" / "config.yaml", record / ".hydra" / "config.yaml")
    return folder


def test_the_training_script_or_its_launch_script(plain: Path) -> None:
    run = api.read(plain)[0]
    assert found_command(run).endswith(" train.py")
    assert home_of(run) == plain.resolve()
    (plain / "run.sh").write_text("#!/bin/bash\npython train.py --lr 0.01\n")
    assert found_command(api.read(plain)[0]) == "bash run.sh"
    (plain / "again.sh").write_text("#!/bin/bash\npython train.py --lr 0.02\n")
    with pytest.raises(InputError, match="several launch scripts"):
        found_command(api.read(plain)[0])


def test_no_script_no_command(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(LOG)
    with pytest.raises(InputError, match="how it is started is not known"):
        found_command(api.read(tmp_path)[0])


def test_an_arm_gets_a_patched_copy_of_the_script(plain: Path, tmp_path: Path) -> None:
    run = api.read(plain)[0]
    command = Command("python train.py", str(plain), None, True, (str(plain / "metrics.csv"),))
    setting = Setting(5, None, None, None, (Edit("optimizer.lr", 3e-3, 1e-4),), {})
    prepare(command, setting, "j", tmp_path / "arm", run, {"run.seed": 0})
    text = (tmp_path / "arm" / "work" / "train.py").read_text()
    assert '"--lr", type=float, default=1e-4' in text
    assert '"--seed", type=int, default=5' in text
    assert "default=3e-3" in (plain / "train.py").read_text()


def test_changes_as_words_of_the_command_line(plain: Path, hydra: Path, tmp_path: Path) -> None:
    run = api.read(plain)[0]
    edits = (Edit("optimizer.lr", 3e-3, 1e-4), Edit("optimizer.weight_decay", 1e-4, 0.01))
    assert overrides(run, edits) == "--lr 0.0001 --weight-decay 0.01"
    command = Command("python train.py {set}", str(plain), None, True)
    job = prepare(command, Setting(5, None, None, None, edits[:1], {}), "j", tmp_path / "arm", run)
    assert job.command == "python train.py --lr 0.0001"
    assert overrides(api.read(hydra)[0], [Edit("optimizer.lr", 2e-3, 1e-4)]) == "optim.lr=0.0001"
    with pytest.raises(InputError, match="neither an option"):
        overrides(run, [Edit("schedule.warmup", None, 10)])


def test_the_files_that_hydra_composes_are_edited(hydra: Path) -> None:
    (made,) = edit_run(api.read(hydra)[0], [Edit("optimizer.lr", 2e-3, 1e-4)])
    assert Path(made.file) == hydra.resolve() / "conf" / "config.yaml"
    assert "lr: 1.0e-4" in made.after


def test_a_plan_without_a_command(plain: Path) -> None:
    rows = "".join(f"{i},{2.3 + i},{2.4 + i},{0.1}\n" for i in range(20))
    (plain / "metrics.csv").write_text("epoch,train_loss,val_loss,val_accuracy\n" + rows)
    from wheeltapper.trial.arms import Wish

    plan = api.plan_trial(plain, None, Wish(sets=("optimizer.lr=1e-4",)))
    assert plan.command.text.endswith("train.py")
    assert plan.command.isolated
    assert plan.seed_way.startswith("by seed in train.py:")
    assert json.dumps(plan.knobs) == '{"run.seed": 0}'
