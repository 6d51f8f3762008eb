"""Launching: resumes, crashes, stale checkpoints, sets of runs. Trainings here are cut to two epochs or so."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from wheeltapper.cli.main import main
from wheeltapper.lab import faults, launch
from wheeltapper.lab.corpus import make_corpus, plan_corpus
from wheeltapper.lab.launch import plan_run, run, run_with_twin
from wheeltapper.lab.systems import NAMES, system
from wheeltapper.lab.truth import load_all

SHORT = {
    "resnet-ddp": {"epochs": 4, "max_samples": 64, "val_samples": 60, "batch_size": 32, "warmup_epochs": 1},
    "sr-nano": {"total_iter": 20, "save_freq": 5, "images": 8, "val_images": 2},
    "sedd-protein": {"n_iters": 40, "eval_freq": 10, "snapshot_freq": 40, "max_samples": 64},
    "edm-prior": {"max_steps": 20, "save_frequency_steps": 5, "val_frequency": 10, "max_files_per_domain": 8},
}


def progress(folder: Path) -> str:
    return (folder / "logs" / "epoch_progress.log").read_text()


def test_the_same_plan_gives_the_same_run_and_is_not_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_run("resnet-ddp", "test", 1, None, SHORT["resnet-ddp"])
    monkeypatch.chdir(tmp_path)
    first = run(plan, Path("a"))  # a relative folder is as good
    again = run(plan, tmp_path / "b")
    assert first.ended == "finished"
    assert first.score == again.score
    lines = [progress(tmp_path / o / "runs" / plan.name).splitlines() for o in "ab"]
    assert [x.split("] ")[1] for x in lines[0]] == [x.split("] ")[1] for x in lines[1]]
    marker = tmp_path / "a" / "runs" / plan.name / "marker"
    marker.touch()
    assert run(plan, tmp_path / "a") == first
    assert marker.exists(), "a run whose truth is written is taken as it is"


@pytest.mark.parametrize("name", NAMES)
def test_a_clean_resume_goes_on_where_it_was(name: str, tmp_path: Path) -> None:
    plan = plan_run(name, "test", 1, "clean-resume", SHORT[name])
    truth = run(plan, tmp_path)
    folder = tmp_path / "runs" / truth.run
    assert truth.ended == "finished"
    logs = {
        "resnet-ddp": ["logs/train.log"],
        "sr-nano": ["experiments/*/train_*.log"],
        "sedd-protein": ["train.out"],
        "edm-prior": ["logs/poisson_diffusion.log"],
    }
    text = "".join(path.read_text() for pattern in logs[name] for path in sorted(folder.glob(pattern)))
    assert "Resum" in text


def test_a_run_that_cannot_start_leaves_its_traceback(tmp_path: Path) -> None:
    truth = run(plan_run("sr-nano", "test", 1, "unknown-key", SHORT["sr-nano"]), tmp_path)
    said = (tmp_path / "runs" / truth.run / "nohup.out").read_text()
    assert truth.ended.startswith("crashed: ValidationError")
    assert "unknown field `grad_clip_max_norm`" in said
    assert str(tmp_path) not in said
    assert truth.score is None


def test_a_crash_at_the_end_is_one(tmp_path: Path) -> None:
    base = SHORT["resnet-ddp"] | {"epochs": 10}
    truth = run_with_twin(plan_run("resnet-ddp", "test", 1, "onecycle-pre-step", base), tmp_path, base)
    assert "Tried to step" in truth.ended
    assert truth.manifested is True
    assert (truth.cause, truth.onset, truth.unit) == ("onecycle-overrun", 10.0, "epoch")
    assert progress(tmp_path / "runs" / truth.run).count("Epoch") == 9


def test_a_stale_checkpoint_is_taken_up(tmp_path: Path) -> None:
    truth = run(plan_run("resnet-ddp", "test", 1, "stale-resume", SHORT["resnet-ddp"]), tmp_path)
    lines = progress(tmp_path / "runs" / truth.run).splitlines()
    assert len(lines) == 1
    assert "Epoch 4/4" in lines[0]


def test_the_script_stays_only_where_it_is_wanted(tmp_path: Path) -> None:
    for keep in (True, False):
        plan = plan_run("edm-prior", "test", int(keep), "clip-not-wired", SHORT["edm-prior"], keep_script=keep)
        truth = run(plan, tmp_path)
        script = tmp_path / "runs" / truth.run / "train.py"
        assert script.exists() is keep
        if keep:
            assert "clip_grad_norm_" not in script.read_text()


def test_a_set_is_decided_before_it_is_made() -> None:
    twins, pairs = plan_corpus(120, NAMES, "test", seed=3)
    again = plan_corpus(120, NAMES, "test", seed=3)
    assert [p.odd.name for p in pairs] == [p.odd.name for p in again[1]]
    assert 120 <= len(twins) + len(pairs) <= 121
    assert len({p.odd.name for p in pairs}) == len(pairs)
    assert {p.twin.name for p in pairs} == {t.name for t in twins}
    assert pickle.loads(pickle.dumps(pairs)) == pairs, "plans are sent to other processes"
    assert all(p.twin.fault is None and p.twin.seed == p.odd.seed for p in pairs)
    kinds = [isinstance(p.odd.fault, faults.Benign) for p in pairs]
    assert 0.1 < sum(kinds) / len(kinds) < 0.45
    assert {p.odd.keep_script for p in pairs} == {True, False}
    assert {p.odd.system for p in pairs} == set(NAMES)
    other = plan_corpus(120, NAMES, "test", seed=4)
    assert not {p.odd.name for p in pairs} & {p.odd.name for p in other[1]}


def test_a_set_is_finished_by_the_same_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = system("edm-prior")
    monkeypatch.setitem(home.RECIPES, "test", home.RECIPES["test"] | SHORT["edm-prior"])
    monkeypatch.setattr(home, "vary", lambda settings, rng: settings | {"learning_rate": rng.uniform(1e-3, 2e-3)})
    said: list[str] = []
    first = make_corpus(3, tmp_path, ["edm-prior"], "test", say=said.append)
    assert len(said) == len(first) == len(load_all(tmp_path))
    assert first[0].kind == "healthy"
    assert main(["lab", "gallery", str(tmp_path), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert all(f"{t.system}, {t.fault}:" in page for t in first if t.fault)
    assert main(["lab", "score", str(tmp_path)]) == 0
    monkeypatch.setattr(launch, "train", None)  # nothing may be trained again
    assert {t.run for t in make_corpus(3, tmp_path, ["edm-prior"], "test")} == {t.run for t in first}


def test_a_set_can_be_made_by_several_processes(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from wheeltapper.lab.corpus import make_corpus
from wheeltapper.lab.systems import system
home = system("edm-prior")
home.RECIPES["test"] |= {SHORT["edm-prior"]}
home.vary = lambda settings, rng: settings
print([t.ended for t in make_corpus(2, Path({str(tmp_path)!r}), ["edm-prior"], "test", jobs=2)])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.count("finished") == 2


def test_the_command_lists_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {one["name"] for one in told["systems"]} == set(NAMES)
    assert len(told["faults"]) >= 40
    assert len(told["benign"]) >= 15
    assert main(["lab", "run", "sr-nano", "--fault", "nonsense", "-o", str(tmp_path)]) == 2
    assert "no fault called" in capsys.readouterr().err
