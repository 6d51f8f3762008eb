"""From which probability on a run is ill or sound: options, pyproject.toml, and what is refused."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from wheeltapper import api
from wheeltapper.cli import main as cli
from wheeltapper.cli.lines import lines_of
from wheeltapper.errors import InputError
from wheeltapper.judge.model import Lines

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "collapsed"


def asked(ill: str | None = None, sound: str | None = None) -> argparse.Namespace:
    return argparse.Namespace(ill_line=ill, sound_line=sound)


def project(folder: Path, text: str) -> Path:
    file = folder / "pyproject.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_default_is_the_judges(tmp_path: Path) -> None:
    assert lines_of(asked(), tmp_path / "pyproject.toml") == Lines()


def test_pyproject_sets_and_an_option_goes_before_it(tmp_path: Path) -> None:
    file = project(tmp_path, "[tool.wheeltapper]\nill_line = 0.8\nsound_line = 0.1\n")
    assert lines_of(asked(), file) == Lines(0.8, 0.1)
    assert lines_of(asked(ill="0.7"), file) == Lines(0.7, 0.1)
    assert lines_of(asked(sound="0.02"), file) == Lines(0.8, 0.02)


def test_a_pyproject_without_us_changes_nothing_even_if_broken(tmp_path: Path) -> None:
    assert lines_of(asked(), project(tmp_path, "[tool.other]\nx = 1\n")) == Lines()
    assert lines_of(asked(), project(tmp_path, "[tool.other\n")) == Lines()


@pytest.mark.parametrize("value", ["0", "1", "1.5", "-0.1", "nan", "inf", "high", ""])
def test_what_is_no_probability_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(InputError, match=r"--ill-line is .* must be a probability between 0 and 1"):
        lines_of(asked(ill=value), tmp_path / "pyproject.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.wheeltapper]\nill_line = 90\n", "ill_line in .* is 90, and must be a probability"),
        ("[tool.wheeltapper]\nsound_line = true\n", "sound_line in .* is True, and must be"),
        ("[tool.wheeltapper]\nsound_line = [0.1]\n", "sound_line in .* must be"),
        ("[tool.wheeltapper]\nill = 0.9\n", "has no setting ill"),
        ("[tool]\nwheeltapper = 3\n", "is no table"),
        ("[tool.wheeltapper\nill_line = 0.9\n", "is no TOML file"),
    ],
)
def test_a_bad_pyproject_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        lines_of(asked(), project(tmp_path, text))


def test_lines_that_cross_are_refused(tmp_path: Path) -> None:
    none = tmp_path / "pyproject.toml"
    with pytest.raises(InputError, match=r"sound line \(0.6, --sound-line\) does not lie below the ill line \(0.5"):
        lines_of(asked(ill="0.5", sound="0.6"), none)
    with pytest.raises(InputError, match=r"0.95, --sound-line\) .* \(0.9, the default\)"):
        lines_of(asked(sound="0.95"), none)


def test_the_lines_reach_the_verdict() -> None:
    """A line above what the judge is sure of takes the verdict back, and one below it gives it again."""
    (found,) = api.diagnose(EXAMPLE)
    assert 0.5 < found.p_ill < 1
    over = (1 + found.p_ill) / 2
    (strict,) = api.diagnose(EXAMPLE, lines=Lines(over, 0.05))
    (lax,) = api.diagnose(EXAMPLE, lines=Lines(0.5, 0.05))
    assert (strict.verdict, lax.verdict) == ("cannot-tell", "ill")
    assert strict.p_ill == lax.p_ill == found.p_ill


def test_the_command_takes_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = api.diagnose(EXAMPLE)
    over = str((1 + found.p_ill) / 2)
    assert cli.main(["diagnose", str(EXAMPLE), "--json", "--ill-line", "0.5"]) == 1
    assert json.loads(capsys.readouterr().out)["runs"][0]["verdict"] == "ill"
    assert cli.main(["diagnose", str(EXAMPLE), "--brief", "--ill-line", over]) == 3
    project(tmp_path, f"[tool.wheeltapper]\nill_line = {over}\n")
    assert cli.main(["diagnose", str(EXAMPLE), "--brief"]) == 3
    capsys.readouterr()
    assert cli.main(["diagnose", str(EXAMPLE), "--ill-line", "2"]) == 2
    assert "--ill-line is '2'" in capsys.readouterr().err
