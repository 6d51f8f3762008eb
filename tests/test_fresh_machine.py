"""What must hold where only the base package and its test tools are installed, and before there is a release."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
TESTS = sorted(Path(__file__).parent.rglob("test_*.py"))
HEAVY = {"torch", "textual", "apprise", "ray", "submitit", "transformers", "lightning", "pandas", "scipy"}
RECORDS = Path(__file__).parent / "records"


def unguarded(source: str) -> list[str]:
    """Optional packages that a test module imports at its top without asking whether they are there."""
    found, asked = [], False
    for node in ast.parse(source).body:
        asked = asked or "importorskip" in ast.unparse(node)
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found += [f"line {node.lineno}: {name}" for name in names if name.split(".")[0] in HEAVY and not asked]
    return found


@pytest.mark.parametrize("path", TESTS, ids=lambda p: p.stem)
def test_no_test_needs_an_optional_package(path: Path) -> None:
    if RECORDS not in path.parents:
        assert unguarded(path.read_text(encoding="utf-8")) == []


def test_the_check_can_fail() -> None:
    assert unguarded("import torch\n") == ["line 1: torch"]
    assert unguarded("torch = pytest.importorskip('torch')\nimport torch.nn\n") == []


TOLD = [ROOT / "README.md", ROOT / "action.yml", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "src").rglob("*.py"))]


def test_nobody_is_told_to_install_a_release_that_does_not_exist() -> None:
    told = re.compile(r"""pip install[^\n`]*["' ]wheeltapper\b(?!\.)""")
    wrong = [f"{p.relative_to(ROOT)}: {m[0]}" for p in TOLD for m in told.finditer(p.read_text(encoding="utf-8"))]
    assert wrong == []


def test_the_action_installs_its_own_checkout() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (install,) = [step for step in action["runs"]["steps"] if step.get("name") == "Install"]
    assert install["env"] == {"HERE": "${{ github.action_path }}"}
    assert install["run"].endswith('"$HERE"')


def test_ci_runs_the_commands_of_the_readme() -> None:
    """.ci/run takes them from the README by their first words; this keeps both in step."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    commands = [block.strip() for block in blocks if block.startswith("python3 -m venv .venv")]
    assert len(commands) == 2
    assert "pytest" in commands[1]
