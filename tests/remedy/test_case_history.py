"""A case over several fixes and runs: where its history lies, who finds it, and what is told when it cannot be written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from wheeltapper import api
from wheeltapper.cli.main import main
from wheeltapper.errors import InputError
from wheeltapper.remedy.case_file import Attempt, Verdict, add_attempt, case_path, load_case
from wheeltapper.remedy.plan_file import load_plan

JUDGED_AS = "lr-too-high"  # what is done about it is tested here, not what the judge says

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def collapsed(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / "collapsed", tmp_path / "collapsed"))


@pytest.fixture
def two_fixes(collapsed: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A fix, and a second one that goes on with its case; what lies between refutes nothing for good."""
    first, second = tmp_path / "first-fix", tmp_path / "deep" / "second-fix"
    assert main(["fix", str(collapsed), "-o", str(first)]) == 0
    between = Attempt("followup", "d", "exp2", "h", verdicts=(Verdict("bad-data-from-step", "REFUTED", "x"),))
    add_attempt(first / "case.json", between, "collapsed")
    assert main(["fix", str(collapsed), "--case", str(first), "-o", str(second)]) == 0
    return first, second


def test_a_fix_made_for_a_case_is_found_as_that_case(
    two_fixes: tuple[Path, Path], collapsed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = two_fixes
    assert load_plan(second / "plan.yaml").case == "../../first-fix/case.json"
    assert not (second / "case.json").exists(), "one case has one history"
    assert load_case(second) == load_case(first)
    assert len(load_case(second).attempts) == 3
    capsys.readouterr()
    assert main(["lessons", str(second)]) == 0
    assert "REFUTED bad-data-from-step" in capsys.readouterr().out
    third = tmp_path / "third-fix"
    assert main(["fix", str(collapsed), "--case", str(second), "--option", "B", "-o", str(third)]) == 0
    assert load_plan(third / "plan.yaml").case == "../first-fix/case.json", "not a case of the second fix"
    assert case_path(third).resolve() == case_path(third / "plan.yaml").resolve() == first / "case.json"


def test_a_followup_of_the_second_fix_is_recorded_in_the_first(
    two_fixes: tuple[Path, Path], collapsed: Path, tmp_path: Path
) -> None:
    first, second = two_fixes
    kinds = ["plan", "followup", "plan"]
    assert api.followup(collapsed, second).stale
    assert [a.what for a in load_case(first).attempts] == kinds, "the old run itself is no attempt"
    new = with_rate(Path(shutil.copytree(collapsed, tmp_path / "new")), "0.0006")
    api.followup(new, second)
    assert [a.what for a in load_case(first).attempts] == [*kinds, "followup"]


def test_a_folder_that_begins_to_serve_another_case_follows_its_plan(
    two_fixes: tuple[Path, Path], collapsed: Path, tmp_path: Path
) -> None:
    first, _ = two_fixes
    own = tmp_path / "own-fix"
    assert main(["fix", str(collapsed), "-o", str(own)]) == 0
    assert case_path(own) == own / "case.json"
    assert main(["fix", str(collapsed), "--case", str(first), "-o", str(own)]) == 0
    assert case_path(own).resolve() == first / "case.json"
    (own / "plan.yaml").write_text("no plan")
    assert case_path(own) == own / "case.json", "with a damaged plan its own history can still be read"


def test_a_case_that_a_plan_names_and_that_is_gone_is_said_so(
    two_fixes: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = two_fixes
    shutil.rmtree(first)
    assert main(["lessons", str(second)]) == 2
    assert "first-fix/case.json: the case cannot be read" in capsys.readouterr().err


def test_a_pin_of_the_only_remedy_refuses_the_fix(
    collapsed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["fix", str(collapsed), "--keep", "lr", "-o", str(out), "--json"]) == 1
    told = msgspec.json.decode(capsys.readouterr().out)
    assert (told["state"], told["written"]) == ("refused", [])
    assert told["headline"].startswith("No fix: you keep optimizer.lr")
    (retrain,) = [option for option in told["options"] if option["letter"] == "B"]
    assert not retrain["possible"]
    assert retrain["why"].startswith("you keep optimizer.lr")
    assert not out.exists()


def with_rate(run: Path, lr: str) -> Path:
    config = run / "args.yaml"
    config.write_text(config.read_text().replace("lr: 0.0012\n", f"lr: {lr}\n"))
    return run


def test_a_config_that_the_log_contradicts_may_be_another_one(collapsed: Path) -> None:
    """The file was edited after the run: the log has 0.0012."""
    note = "Look whether this config is the one the run was started with"
    assert not any(line.startswith(note) for line in api.fix(collapsed).notes)
    fix = api.fix(with_rate(collapsed, "0.0003"), wanted="lr-too-high")
    assert [e.knob for e in fix.choice.edits] == ["optimizer.lr"]
    (told,) = [line for line in fix.notes if line.startswith(note)]
    assert "2.592e-05 was planned, 0.0001009 is logged" in told


def unwritable(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a folder that may only be read; the tests may run as root, whom no permission stops."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("wheeltapper.settings.write.tempfile.mkstemp", refuse)


@pytest.mark.parametrize("form", [[], ["--json"], ["--markdown"]])
def test_followup_tells_its_result_where_it_cannot_be_recorded(
    form: list[str],
    collapsed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    assert main(["fix", str(collapsed), "-o", str(out)]) == 0
    before = (out / "case.json").read_bytes()
    new = with_rate(Path(shutil.copytree(collapsed, tmp_path / "new")), "0.001")
    capsys.readouterr()
    unwritable(monkeypatch)
    assert main(["followup", str(new), "--plan", str(out), *form]) == 2
    told = capsys.readouterr()
    assert "OPEN" in told.out
    assert "case.json: cannot be written: Permission denied" in told.err
    assert (out / "case.json").read_bytes() == before
    assert main(["followup", str(new), "--plan", str(out), "--no-record", *form]) == 1


def test_an_error_names_the_folder_that_was_asked_for(
    collapsed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not the hidden one that is filled before it takes the name."""
    fix = api.fix(collapsed)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError) as told:
        api.save_fix(fix, tmp_path / "file" / "out")
    assert told.value.where == str(tmp_path / "file" / "out")
    unwritable(monkeypatch)
    with pytest.raises(InputError, match="cannot be written: Permission denied") as told:
        api.save_fix(fix, tmp_path / "out")
    assert told.value.where == str(tmp_path / "out")
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")], "nothing half-filled stays"
