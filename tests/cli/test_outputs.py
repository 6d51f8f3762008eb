"""What a command writes is whole or not there, and never takes the place of what it reads."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from wheeltapper.cli.main import main

JUDGED_AS = "lr-too-high"  # what the commands do with it is tested here, not what the judge says

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(EXAMPLES / "collapsed", tmp_path / "run"))
    (folder / "train.py").write_text("print('mine')\n")
    return folder


@pytest.mark.parametrize("name", ["summary.csv", "args.yaml", "train.py"])
@pytest.mark.parametrize("option", ["-o", "--html"])
def test_a_report_never_replaces_a_file_of_the_run(
    run: Path, name: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (run / name).read_bytes()
    for path in (run, run / name):
        assert main(["diagnose", str(path), option, str(run / name)]) == 2
        assert "is a file of the run" in capsys.readouterr().err
        assert (run / name).read_bytes() == before
    link = run.parent / "link"
    link.symlink_to(run / name)
    assert main(["check", str(run), "-o", str(link)]) == 2
    assert (run / name).read_bytes() == before


def test_a_report_in_the_folder_of_the_run_is_written_again(run: Path) -> None:
    for name, options in (("a.json", ["--json"]), ("a.md", ["--markdown"]), ("a.txt", [])):
        for _ in range(2):
            assert main(["diagnose", str(run), *options, "-o", str(run / name)]) == 1
    for _ in range(2):
        assert main(["diagnose", str(run), "--html", str(run / "a.html")]) == 1


def test_what_was_there_stays_until_the_new_is_whole(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.txt"
    target.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        assert main(["diagnose", str(run), "-o", str(target)]) == 2
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_device_is_written_to(run: Path) -> None:
    assert main(["diagnose", str(run), "-o", "/dev/null"]) == 1
    assert not Path("/dev/null").is_file()
