"""Any training command: what is filled in, what is copied, what stays as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from trial_toy import toy_run

from wheeltapper.errors import InputError
from wheeltapper.finding import Edit
from wheeltapper.run.gather import read_runs
from wheeltapper.trial.engines import Job, wrapped
from wheeltapper.trial.protocol import Command, Setting, check_command, fill, holes, lay_out, prepare


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    return toy_run(tmp_path / "exp1")


def prepared(run_folder: Path, folder: Path, text: str, *, isolated: bool = False, edits: tuple[Edit, ...] = ()) -> Job:
    run = read_runs(run_folder)[0]
    command = Command(
        text, str(run_folder), str(run_folder / "config.yaml"), isolated, (str(run_folder / "train.log"),)
    )
    setting = Setting(9, 100.0, None, None, edits, {"optimizer.lr": 2.3})
    return prepare(command, setting, "j", folder, run, {"run.seed": 7, "optimizer.lr": 2.3})


def test_the_shells_own_braces_are_left_alone() -> None:
    text = "X=${HOME}/{seed} awk '{print $1}' {out} ${seed}"
    assert holes(text) == ["seed", "out"]
    assert fill(text, {"seed": 1, "out": "o"}) == "X=${HOME}/1 awk '{print $1}' o ${seed}"


def test_values_are_quoted_for_the_shell() -> None:
    assert fill("t {out}", {"out": "a b; rm -rf ~"}) == "t 'a b; rm -rf ~'"


@pytest.mark.parametrize(
    ("text", "told"), [("", "empty"), ("python t.py {confg}", "confg"), ("t {optimizer.rate}", "optimizer.rate")]
)
def test_commands_that_cannot_be_filled_are_refused(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        check_command(text)


def test_seed_and_remedy_go_into_a_copy_of_the_config(run_folder: Path, tmp_path: Path) -> None:
    before = (run_folder / "config.yaml").read_bytes()
    job = prepared(
        run_folder,
        tmp_path / "a",
        "python train.py --config {config} --out {out}",
        edits=(Edit("optimizer.lr", 2.3, 1.0),),
    )
    text = (tmp_path / "a" / "config" / "config.yaml").read_text(encoding="utf-8")
    assert "seed: 9" in text
    assert "lr: 1.0  # over 2 / curvature" in text
    assert (run_folder / "config.yaml").read_bytes() == before
    assert job.cwd == str(run_folder)
    assert str(tmp_path / "a" / "out") in job.command


def test_a_knob_in_the_command_needs_no_config(run_folder: Path, tmp_path: Path) -> None:
    edits = (Edit("optimizer.lr", 2.3, 0.5),)
    assert (
        "--lr 0.5 --seed 9"
        in prepared(run_folder, tmp_path / "a", "t --lr {optimizer.lr} --seed {seed} {out}", edits=edits).command
    )
    assert "--lr 2.3" in prepared(run_folder, tmp_path / "b", "t --lr {optimizer.lr} --seed {seed} {out}").command


def test_the_environment_says_the_same(run_folder: Path, tmp_path: Path) -> None:
    env = prepared(run_folder, tmp_path / "a", "t {config} {out}").env
    assert env["WHEELTAPPER_SEED"] == "9"
    assert env["WHEELTAPPER_STEPS"] == "100"
    assert env["WHEELTAPPER_OUT"] == str(tmp_path / "a" / "out")
    assert "WHEELTAPPER_RESUME" not in env


def test_without_out_it_runs_in_a_copy_without_what_the_run_wrote(run_folder: Path, tmp_path: Path) -> None:
    (run_folder / "data").mkdir()
    (run_folder / "data" / "big.bin").write_bytes(b"\0" * (17 << 20))
    job = prepared(run_folder, tmp_path / "a", "python train.py --config {config}", isolated=True)
    work = tmp_path / "a" / "work"
    assert job.cwd == str(work)
    assert "--config config.yaml" in job.command
    assert "seed: 9" in (work / "config.yaml").read_text(encoding="utf-8")
    assert (work / "train.py").is_file()
    assert not (work / "train.py").is_symlink()
    assert not (work / "train.log").exists()
    assert (work / "data" / "big.bin").is_symlink()
    subprocess.run(["/bin/sh", "-c", wrapped(job)], cwd=job.cwd, check=True, capture_output=True)
    assert (work / "train.log").is_file()
    assert "seed: 7" in (run_folder / "config.yaml").read_text(encoding="utf-8")


def test_a_data_folder_is_linked_and_a_huge_one_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "s"
    (source / "images").mkdir(parents=True)
    for i in range(501):
        (source / "images" / f"{i}.png").touch()
    lay_out(source, tmp_path / "t")
    assert (tmp_path / "t" / "images").is_symlink()
    monkeypatch.setattr("wheeltapper.trial.protocol.MOST_ENTRIES", 1)
    (source / "other").mkdir()
    with pytest.raises(InputError, match="too many to copy"):
        lay_out(source, tmp_path / "u")


def test_the_hook_writes_rows_and_needs_no_numpy(tmp_path: Path) -> None:
    code = (
        "import sys; from wheeltapper import trial\n"
        "for i in range(3): trial.step(loss=1.0 / (i + 1))\n"
        "trial.step(10, loss=float('nan'), acc=0.5)\n"
        "print(trial.seed(3), trial.steps(50), trial.out('x') == sys.argv[1], 'numpy' in sys.modules)"
    )
    env = {**os.environ, "WHEELTAPPER_OUT": str(tmp_path), "WHEELTAPPER_SEED": "4"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["4", "50", "True", "False"]
    run = read_runs(tmp_path / "wheeltapper_steps.jsonl")[0]
    loss = next(s for s in run.series.values() if s.raw == "loss")
    assert loss.at.tolist() == [0, 1, 2, 10]
    assert loss.values[:3].tolist() == [1.0, 0.5, 1 / 3]
    assert not loss.finite[3]


def test_the_hook_does_nothing_outside_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wheeltapper import trial

    monkeypatch.delenv("WHEELTAPPER_OUT", raising=False)
    monkeypatch.chdir(tmp_path)
    trial.step(loss=1.0)
    assert list(tmp_path.iterdir()) == []
