"""What users read names its sources in full: no rule number and no paper of ours that they do not have."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from wheeltapper.api import diagnose
from wheeltapper.report.json_out import diagnoses_object, dumps
from wheeltapper.report.pages import pages

ROOT = Path(__file__).resolve().parents[1]
OURS = re.compile(
    r"KNOWLEDGE\b|\bCASES(\.md| §)|ECOSYSTEM|\bPEERS( §|\.md)|PERF\.md|STYLE\.md|"
    r"\b(ST|OUT|NORM|LR|SCH|AMP|EMA|CLIP|LW|DIF|CUR|DAT|MOD|TRN|SYS|PRG|TRL|FOLK)-\d\d"
)
MODULES = sorted((ROOT / "src" / "wheeltapper").rglob("*.py"))


@pytest.mark.parametrize("page", pages(), ids=lambda page: f"{page.kind}-{page.id}")
def test_a_page_names_its_sources(page: object) -> None:
    assert OURS.findall(str(page)) == []


def test_every_written_page_names_its_sources() -> None:
    told = [f"{p.name}: {m[0]}" for p in (ROOT / "docs").rglob("*.md") if (m := OURS.search(p.read_text("utf-8")))]
    assert told == []


def _docstrings(tree: ast.AST) -> set[int]:
    """Strings that stand alone: they are read by who reads the code, and never shown."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def test_no_string_that_may_be_shown_holds_a_number_of_ours() -> None:
    told = []
    for path in MODULES:
        tree = ast.parse(path.read_text("utf-8"))
        alone = _docstrings(tree)
        told += [
            f"{path.relative_to(ROOT)}:{node.lineno}: {found[0]}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
            if (found := OURS.search(node.value))
        ]
    assert told == []


@pytest.mark.parametrize("case", sorted(p.name for p in (ROOT / "examples" / "cases").iterdir()))
def test_a_report_names_no_number_of_ours(case: str) -> None:
    assert OURS.findall(dumps(diagnoses_object(diagnose(ROOT / "examples" / "cases" / case)))) == []
