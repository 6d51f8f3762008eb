"""The text for agents: short, and true of the commands and tools it names. And the command without the extra."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from wheeltapper.cli.main import COMMANDS, main


def text() -> str:
    return (files("wheeltapper.mcp") / "agents.md").read_text(encoding="utf-8")


def test_it_has_under_800_words() -> None:
    assert len(text().split()) < 800


def test_it_names_commands_that_there_are() -> None:
    named = set(re.findall(r"`wheeltapper (\w+)", text()))
    assert named
    assert named <= set(COMMANDS)


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents"]) == 0
    assert capsys.readouterr().out == text()


def test_its_example_of_claims_is_read_as_claims() -> None:
    import msgspec

    from wheeltapper.review.model import ClaimFile

    example = re.search(r"claims=(\[.*?\])\)", text(), re.S)
    assert example
    claims = msgspec.json.decode(f'{{"claims": {example.group(1)}}}'.encode(), type=ClaimFile).claims
    assert [type(claim).__name__ for claim in claims] == ["Value", "Blame"]


def test_without_the_extra_the_command_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert main(["mcp", str(tmp_path)]) == 2
    assert "pip install mcp" in capsys.readouterr().err


def test_a_folder_that_is_none_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "/nowhere"]) == 2
    assert "there is no folder" in capsys.readouterr().err
