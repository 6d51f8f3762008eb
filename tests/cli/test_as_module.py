"""`python -m wheeltapper`, and commands that can be pasted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wheeltapper.remedy.launch import Command
from wheeltapper.report.fix_view import commands_of


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wheeltapper", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("wheeltapper ")


@pytest.mark.skipif(sys.platform == "win32", reason="lines for a shell")
def test_the_next_command_works_from_the_folder_it_goes_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fix").mkdir()
    (tmp_path / "fix" / "run.sh").write_text("pwd > where.txt\n")
    start = Command("mkdir -p NEW_RUN && cd NEW_RUN && bash {new}/run.sh", "start the next run")
    fix: Any = SimpleNamespace(plan=object(), letter="B", commands=(start,), edited=())
    line, follow = commands_of(fix, "fix")
    subprocess.run(["bash", "-c", f"{line} && ls NEW_RUN/where.txt"], check=True)
    assert follow == "wheeltapper followup NEW_RUN --plan fix/plan.yaml"
