"""Nothing that a run left behind is executed: our own source holds no call that could (design/004)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[1] / "src" / "wheeltapper"
# lab trains models of its own and guard lives inside the user's training: neither opens files of others.
OWN_PROCESS = {"lab", "guard"}
# A trial starts what the user names on the command line (the training, git in their own checkout), never what a run's
# files say. The places where that happens are named, so that there is no other.
# remedy/loads.py hands a config that we wrote to the framework's own loader, in a process of its own.
# fleet/pool.py starts our own worker (`python -P -m wheeltapper.fleet.worker`), with no word of a run in the command.
STARTS = {"fleet/pool.py", "remedy/loads.py", "trial/engines/local.py", "trial/engines/slurm.py", "trial/git.py"}
FORBIDDEN_NAMES = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_CALLS = {
    ("pickle", "load"),
    ("pickle", "loads"),
    ("pickle", "Unpickler"),
    ("marshal", "loads"),
    ("torch", "load"),
    ("yaml", "load"),
    ("yaml", "unsafe_load"),
    ("yaml", "full_load"),
    ("os", "system"),
    ("os", "popen"),
    ("runpy", "run_path"),
    ("runpy", "run_module"),
    ("np", "load"),
    ("numpy", "load"),
    ("subprocess", "run"),
    ("subprocess", "Popen"),
    ("subprocess", "check_output"),
}


def dangerous(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            call = node.func
            if isinstance(call, ast.Name) and call.id in FORBIDDEN_NAMES:
                found.append(f"line {node.lineno}: {call.id}()")
            named = isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name)
            if named and (call.value.id, call.attr) in FORBIDDEN_CALLS:
                found.append(f"line {node.lineno}: {call.value.id}.{call.attr}()")
        if isinstance(node, ast.ImportFrom) and node.module in {"pickle", "marshal", "runpy", "subprocess"}:
            found.append(f"line {node.lineno}: from {node.module}")
    return found


MODULES = sorted(p for p in SRC.rglob("*.py") if p.relative_to(SRC).parts[0] not in OWN_PROCESS)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_nothing_can_run_what_it_reads(path: Path) -> None:
    found = dangerous(path.read_text(encoding="utf-8"))
    if path.relative_to(SRC).as_posix() in STARTS:
        found = [one for one in found if "subprocess." not in one]
    assert found == []


def test_the_check_can_fail() -> None:
    assert dangerous("import pickle\npickle.load(f)\n") == ["line 2: pickle.load()"]
    assert dangerous("def f(x):\n    return eval(x)\n") == ["line 2: eval()"]
    assert dangerous("from subprocess import run\n") == ["line 1: from subprocess"]
