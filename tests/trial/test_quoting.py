"""A file named `$(cmd).yaml` is a file, wherever the command names it; a path with a space is one argument."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wheeltapper.errors import InputError
from wheeltapper.trial.protocol import fill

NASTY = [
    "$(touch ran).yaml", "`touch ran`.yaml", "a b.yaml", "x;touch ran.yaml", "'.yaml", '".yaml', "a\\.yaml", "${HOME}.yaml",
    "*.yaml", "~", "!x", "a&touch ran", "x|y", "é ü.yaml", "-rf", "\\", "$'\\x'",
]  # fmt: skip
PRINT = f"{sys.executable} -c 'import sys; print(ascii(sys.argv[1:]))'"


def arguments(command: str, folder: Path) -> list[str]:
    done = subprocess.run(["/bin/sh", "-c", command], cwd=folder, capture_output=True, text=True, check=True)
    assert list(folder.iterdir()) == [], "the command ran something"
    found: list[str] = eval(done.stdout)
    return found


@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize(
    ("form", "given"),
    [
        ("{config}", "%s"), ('"{config}"', "%s"), ("'{config}'", "%s"), ("--config={config}", "--config=%s"),
        ('"--config={config}"', "--config=%s"), ("'--config={config}'", "--config=%s"), ('a"b{config}c"d', "ab%scd"),
        ("\\\"{config}", '"%s'),
    ],
)  # fmt: skip
def test_a_value_is_one_argument(tmp_path: Path, value: str, form: str, given: str) -> None:
    command = fill(f"{PRINT} {form} end", {"config": value})
    assert arguments(command, tmp_path) == [given % value, "end"]


@pytest.mark.parametrize(
    "command",
    [
        "bash -c 'python t.py {config}'", 'sh -c "python t.py {config}"', "sh -c {config}", "eval python t.py {config}",
        'echo "$(cat {config})"', 'echo `cat {config}`', "ssh host python t.py {config}", "cat <<END\n{config}\nEND", 'python t.py "a b {config}"',
        "/bin/bash -ec 'python t.py {config}'",
    ],
)  # fmt: skip
def test_where_no_quoting_is_sure_the_command_is_refused(command: str) -> None:
    with pytest.raises(InputError):
        fill(command, {"config": "$(touch ran).yaml"})
    assert fill(command, {"config": "runs/a_1.yaml"}) == command.replace("{config}", "runs/a_1.yaml")


def test_a_line_break_or_a_nul_is_refused() -> None:
    for value in ("a\nb", "a\0b"):
        with pytest.raises(InputError):
            fill("python t.py {config}", {"config": value})


def test_values_of_knobs_are_no_code_either(tmp_path: Path) -> None:
    command = fill(f'{PRINT} --opt "{{optimizer.name}}"', {"optimizer.name": "adam$(touch ran)"})
    assert arguments(command, tmp_path) == ["--opt", "adam$(touch ran)"]
