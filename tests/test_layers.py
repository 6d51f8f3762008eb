"""Data flows one way. A module may import from its own layer or from layers to its left, nowhere else;
imports inside functions count too, and there are no exemptions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[1] / "src" / "wheeltapper"

# Left to right. A name is a top-level module or package of wheeltapper.
LAYERS = [
    "errors",
    "shown",
    "limits",
    "finding",
    "settings",
    "reading",
    "run",
    "places",
    "program",
    "simulate",
    "audit",
    "study",
    "observations",
    "rules",
    "judge",
    "prognosis",
    "remedy",
    "trial",
    "review",
    "report",
    "api",
    "fleet",
    "web",
    "watch",
    "mcp",
    "testing",
    "guard",
    "lab",
    "cli",
    "notebook",
    "__main__",
]
TORCH_ALLOWED = {"guard", "lab"}


def layer_of(path: Path) -> str:
    relative = path.relative_to(SRC)
    return relative.parts[0].removesuffix(".py")


def imports_of(source: str) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            if module == "wheeltapper":
                found += [(node.lineno, f"wheeltapper.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, module))
    return found


def wrong_imports(source: str, layer: str) -> list[str]:
    wrong = []
    for line, module in imports_of(source):
        parts = module.split(".")
        if parts[0] == "torch" and layer not in TORCH_ALLOWED:
            wrong.append(f"line {line}: {layer} imports torch")
        if parts[0] != "wheeltapper" or len(parts) < 2 or parts[1] in {"__version__"}:
            continue
        target = parts[1]
        if target not in LAYERS:
            wrong.append(f"line {line}: {target} is in no layer")
        elif LAYERS.index(target) > LAYERS.index(layer):
            wrong.append(f"line {line}: {layer} imports {target}, which lies to its right")
    return wrong


MODULES = sorted(p for p in SRC.rglob("*.py") if p != SRC / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_only_go_left(path: Path) -> None:
    layer = layer_of(path)
    assert layer in LAYERS, f"{path} belongs to no layer; add it to LAYERS at its place in the flow"
    assert wrong_imports(path.read_text(encoding="utf-8"), layer) == []


def test_the_check_can_fail() -> None:
    hidden = "def f():\n    from wheeltapper.report import view\n"
    assert wrong_imports(hidden, "run") == ["line 2: run imports report, which lies to its right"]
    assert wrong_imports("import torch\n", "rules") == ["line 1: rules imports torch"]
    assert wrong_imports("from wheeltapper import api\n", "rules") == [
        "line 1: rules imports api, which lies to its right"
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_a_module_can_be_read_in_one_sitting(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 450, f"{path.relative_to(SRC)} has {lines} lines; split it by subject"


def test_no_file_without_a_subject() -> None:
    banned = {"utils.py", "common.py", "helpers.py", "misc.py"}
    assert [p for p in MODULES if p.name in banned] == []
