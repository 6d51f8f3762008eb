"""Documents that cannot drift: pages come from the code, and what the README says exists."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from wheeltapper import observations
from wheeltapper.cli import docs
from wheeltapper.cli.main import COMMANDS, build_parser, main
from wheeltapper.program import checks
from wheeltapper.report.pages import Page, pages, pages_of
from wheeltapper.rules import causes, signs

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "wheeltapper"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_pages_are_fresh() -> None:
    assert docs.stale(ROOT) == [], "run `just docs` and commit what it writes"


def test_a_stale_page_is_noticed(tmp_path: Path) -> None:
    docs.write(tmp_path)
    assert docs.stale(tmp_path) == []
    (tmp_path / "docs" / "cli.md").write_text("old", encoding="utf-8")
    (tmp_path / "docs" / "signs" / "gone.md").write_text("gone", encoding="utf-8")
    assert docs.stale(tmp_path) == [
        "docs/cli.md is stale",
        "docs/signs/gone.md belongs to no observation, sign, cause, check or command",
    ]


def test_every_module_has_its_page() -> None:
    assert {p.id for p in pages_of("observation")} == {observation.id for observation in observations.observations()}
    assert {p.id for p in pages_of("sign")} == {sign.id for sign in signs.signs()}
    assert {p.id for p in pages_of("cause")} == {unit.id for unit in (*causes.causes(), *causes.normals())}
    assert {p.id for p in pages_of("check")} == set(checks.checks()) | ids_of_configuration_checks()


def ids_of_configuration_checks() -> set[str]:
    """What config/ and audit/ may report, read from their source, less what a code check explains."""
    config = "".join(p.read_text(encoding="utf-8") for p in (SRC / "settings").rglob("*.py"))
    arithmetic = (SRC / "audit" / "arithmetic.py").read_text(encoding="utf-8")
    told = set(re.findall(r'Problem\(\s*"([a-z-]+)"', config)) | {"syntax", "duplicate-key"}
    return (told | set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', arithmetic))) - set(checks.checks())


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.id)
def test_a_page_has_its_sections_and_they_say_something(page: Page) -> None:
    wanted = {"observation": observations.SECTIONS, "sign": signs.SECTIONS, "cause": causes.SECTIONS, "check": checks.SECTIONS}[page.kind]
    said = dict(page.sections)
    assert [heading for heading in wanted if not said.get(heading)] == []
    assert page.title.endswith("."), "the first line of the docstring is a sentence"


def test_an_id_names_one_page_of_a_kind() -> None:
    ids = [(page.kind, page.id) for page in pages()]
    assert len(ids) == len(set(ids))


def parsers() -> dict[str, argparse.ArgumentParser]:
    parser = build_parser()
    action = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


def test_every_command_is_there_and_teaches_by_example() -> None:
    found = parsers()
    assert list(found) == list(COMMANDS)
    for name, parser in found.items():
        assert parser.description, f"{name} has no description"
        assert f"wheeltapper {name}" in (parser.epilog or ""), f"the help of {name} has no example"
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                assert all(choice.help for choice in action._choices_actions)
                continue
            assert action.help, f"{name}: {action.option_strings or action.dest} has no help"


def test_every_command_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"## wheeltapper {name}\n" in reference


def commands_in(text: str) -> list[list[str]]:
    found = re.findall(r"(?:^|[\s`/&])wheeltapper ((?:[a-z]+)(?: [^`\n|&#]*)?)", text)
    return [shlex.split(words) for words in found]


def commands_shown(markdown: str) -> list[list[str]]:
    code = re.findall(r"```.*?```|`[^`\n]+`", markdown, re.DOTALL)
    return [words for block in code for words in commands_in(block)]


def test_commands_in_the_readme_exist() -> None:
    shown = commands_shown(README)
    assert len(shown) >= 3
    for words in shown:
        assert words[0] in COMMANDS, f"the README shows `wheeltapper {' '.join(words)}`"
        known = {option for action in parsers()[words[0]]._actions for option in action.option_strings}
        options = [word.split("=")[0] for word in words if word.startswith("--")]
        assert [option for option in options if option not in known] == []


def test_the_output_in_the_readme_is_what_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    (command, shown), *_ = re.findall(r"^\$ wheeltapper (.*)\n((?:.*\n)*?)```", README, re.MULTILINE)
    main([*shlex.split(command), "--width", "100"])
    assert capsys.readouterr().out == shown, "put what it prints now into README.md"


def test_paths_in_the_readme_exist() -> None:
    paths = re.findall(r"(?:examples|docs|design|tests|benchmarks)/[\w./-]*\w", README)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_readme_holds_one_command_that_runs_the_tests() -> None:
    blocks = re.findall(r"```(?:sh|bash|console)?\n(.*?)```", README, re.DOTALL)
    assert len([block for block in blocks if "pytest" in block]) == 1


@pytest.mark.parametrize("note", sorted((ROOT / "design").glob("*.md")), ids=lambda p: p.stem)
def test_a_design_note_has_its_parts_and_its_test_exists(note: Path) -> None:
    text = note.read_text(encoding="utf-8")
    for heading in ("Problem", "Choice", "What would change our mind", "(The test that guards it|Guarded by)"):
        assert re.search(rf"^(## {heading}$|\*\*{heading}\.\*\*)", text, re.MULTILINE), heading
    guards = re.split(r"## The test that guards it|\*\*Guarded by", text)[1]
    for path in re.findall(r"tests/[\w/]+\.py", guards):
        assert (ROOT / path).is_file(), path
    for path, name in re.findall(r"(tests/[\w/]+\.py)::(\w+)", guards):
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name
