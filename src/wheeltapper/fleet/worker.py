"""Judges units, one after the other: a process of its own, so that a unit that costs a process costs no other.

    python -m wheeltapper.fleet.worker     a Task a line on standard input, an Outcome a line on standard output
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from wheeltapper import api
from wheeltapper.errors import InputError, NothingToRead, WheeltapperError
from wheeltapper.fleet.row import Row, row_of
from wheeltapper.fleet.units import Unit
from wheeltapper.judge.model import Diagnosis, Lines
from wheeltapper.report.text import clean


class Task(msgspec.Struct, frozen=True):
    """A unit to judge, as it goes to a worker."""

    path: str
    files: list[str]
    shared: list[str]
    top: str | None
    ill: float
    sound: float


class Outcome(msgspec.Struct, frozen=True):
    """What came of it. `problem`: why there is no row, in words."""

    path: str
    rows: list[Row] = []
    problem: str = ""


def task_of(unit: Unit, lines: Lines) -> Task:
    top = None if unit.top is None else str(unit.top)
    return Task(str(unit.path), [str(f) for f in unit.files], [str(f) for f in unit.shared], top, lines.ill, lines.sound)


def diagnoses_of(task: Task) -> list[Diagnosis]:
    """The diagnoses of the runs of a unit, as reading the whole folder would give them."""
    files = None if task.top is None else [Path(file) for file in (*task.files, *task.shared)]
    runs = api.read(task.path, files=files, within=None if task.top is None else Path(task.top))
    return [api.judge(run, lines=Lines(task.ill, task.sound)) for run in runs]


def judged(task: Task) -> Outcome:
    """Never raises: a unit that cannot be judged says why."""
    try:
        folder = task.path if os.path.isdir(task.path) else os.path.dirname(task.path)
        rows = [row_of(diagnosis, folder) for diagnosis in diagnoses_of(task)]
        return Outcome(task.path, rows)
    except NothingToRead:
        return Outcome(task.path)
    except InputError as error:
        return Outcome(task.path, problem=clean(error.what))
    except OSError as error:
        return Outcome(task.path, problem=clean(error.strerror or error))
    except WheeltapperError as error:
        return Outcome(task.path, problem=clean(error.what))
    except Exception as error:  # one run that a rule fails on does not end the scan of thousands
        words = f"this is a bug in Wheeltapper, not in your run: {type(error).__name__}: {error}"
        return Outcome(task.path, problem=clean(words))


def serve_tasks() -> None:
    """Answer tasks until there are none. What anything prints goes to standard error, never between the answers."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin.buffer:
        outcome = judged(msgspec.json.decode(line, type=Task))
        answers.write(msgspec.json.encode(outcome) + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve_tasks()
