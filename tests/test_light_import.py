"""Importing wheeltapper is free, and --help answers at once. In a subprocess: this one has imported everything."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = ("torch", "pandas", "matplotlib", "scipy", "tensorboard", "tensorflow", "polars", "pyarrow")


def loaded(code: str, names: tuple[str, ...]) -> list[str]:
    """Which of `names` a fresh interpreter has loaded after running `code`."""
    ask = f"{code}\nimport sys\nprint('LOADED', *(n for n in {names!r} if n in sys.modules))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("LOADED"))
    return line.split()[1:]


HELP = """
from wheeltapper.cli.main import main
try:
    main(["--help"])
except SystemExit as done:
    assert done.code == 0
"""


def test_import_loads_nothing() -> None:
    assert loaded("import wheeltapper", (*HEAVY, "numpy", "rich", "jinja2", "yaml")) == []


def test_the_api_loads_nothing_heavy() -> None:
    assert loaded("import wheeltapper.api, wheeltapper.report.html, wheeltapper.report.terminal", HEAVY) == []


def test_help_loads_no_numpy() -> None:
    assert loaded(HELP, (*HEAVY, "numpy", "rich", "jinja2", "yaml", "msgspec")) == []


@pytest.mark.parametrize("command", ["show", "diagnose", "check", "lab"])
def test_help_of_a_command_loads_no_numpy(command: str) -> None:
    assert loaded(HELP.replace('"--help"', f'"{command}", "--help"'), (*HEAVY, "numpy", "rich")) == []


def test_the_check_can_fail() -> None:
    assert loaded("import numpy", ("numpy", "torch")) == ["numpy"]
    assert loaded("import wheeltapper\nwheeltapper.read", ("numpy",)) == ["numpy"]


def test_help_is_quick() -> None:
    """CPU time, the best of three: the machine that runs the tests is busy."""
    best = 9.0
    for _ in range(3):
        before = os.times()
        subprocess.run([sys.executable, "-m", "wheeltapper.cli.main", "--help"], capture_output=True, check=True)
        after = os.times()
        best = min(best, after.children_user - before.children_user + after.children_system - before.children_system)
    assert best < 0.15, f"--help takes {1000 * best:.0f} ms of CPU"
