"""What could not be read is not passed: `check` says so, also by its exit code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wheeltapper import api, audit
from wheeltapper.cli.main import main
from wheeltapper.program import checks
from wheeltapper.run import gather
from wheeltapper.run.gather import read_runs

LOOP = """
import torch
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.ones(9, 1):
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("text", ["def f(:\n", 'print "x"\n', "x = " + "(" * 5000 + ")" * 5000, "\0", "# " + "x" * 2_100_000])
def test_a_script_that_cannot_be_read_is_no_pass(tmp_path: Path, text: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    assert main(["check", str(script)]) == 3
    assert main(["check", str(tmp_path)]) == 3
    assert main(["check", str(script), "--exit-zero"]) == 0
    (tmp_path / "other.py").write_text("print(1)\n")
    assert main(["check", str(tmp_path)]) == 0  # a folder of which something was read; the note stays
    assert any("train.py" in note for note in api.check(tmp_path).notes)


def test_a_check_that_fails_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOOP)
    before = [f.id for f in api.check(script).findings]
    assert before

    def fails(code: object) -> None:
        raise KeyError("x")

    name = next(name for name in checks.checks() if name not in before)
    monkeypatch.setattr(checks.checks()[name], "check", fails)
    report = api.check(script)
    assert [f.id for f in report.findings] == before
    assert any(f"the check {name} failed: KeyError" in note for note in report.notes)


@pytest.mark.parametrize("part", ["read_knobs", "check_config", "rows_of", "arithmetic", "length_of", "read_code", "others_differ"])
def test_a_part_that_fails_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    (tmp_path / "args.yaml").write_text("lr: 0.1\nepochs: 90\nbatch_size: 32\nsched: cosine\n")
    (tmp_path / "train.py").write_text(LOOP)

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(audit, part, fails)
    report = api.check(tmp_path)
    assert any("ZeroDivisionError" in note for note in report.notes)


def test_more_files_than_are_looked_at_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(6):
        (tmp_path / f"{i}.yaml").write_text("lr: 0.1\n")
        (tmp_path / f"{i}.csv").write_text("step,loss\n" + "".join(f"{k},{2 / (k + 1)}\n" for k in range(9)))
    monkeypatch.setattr(audit, "MOST_FILES", 4)
    assert any("2 more files" in note for note in api.check(tmp_path).notes)
    monkeypatch.setattr(gather, "MOST_FILES", 4)
    told = [note.text for run in read_runs(tmp_path) for note in run.notes]
    assert any("more than 4 files" in text for text in told)


@pytest.mark.parametrize("words", [["check"], ["diagnose"], ["show"], ["schedule"], ["fix", "--dry-run"], ["lessons"], ["replay"], ["watch", "--once"]])
def test_a_pipe_is_never_waited_for(tmp_path: Path, words: list[str]) -> None:
    pipe = tmp_path / "train.py"
    os.mkfifo(pipe)
    os.mkfifo(tmp_path / "config.yaml")
    for path in (pipe, tmp_path / "config.yaml", tmp_path):
        extra = ["--state", str(tmp_path / "state.json")] if words[0] == "watch" else []
        assert main([words[0], str(path), *words[1:], *extra]) in (2, 3)
    assert main(["followup", str(tmp_path), "--plan", str(pipe)]) == 2
    assert main(["fix", str(tmp_path), "--case", str(pipe)]) == 2
