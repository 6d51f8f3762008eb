"""What the command line, notebooks and other programs call.

import wheeltapper
for diagnosis in wheeltapper.diagnose("runs/exp1"):
    print(diagnosis.verdict, diagnosis.headline)
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

from wheeltapper.diagnosis.diagnose import diagnose_run
from wheeltapper.diagnosis.model import Diagnosis
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run

Where = str | PathLike[str]
Progress = Callable[[str], None]

__all__ = ["diagnose", "read"]


def read(path: Where, *, progress: Progress | None = None) -> list[Run]:
    """Every run at a file or folder. Raises InputError where there is none."""
    return read_runs(str(path), progress=progress)


def diagnose(path: Where, *, progress: Progress | None = None) -> list[Diagnosis]:
    """The diagnosis of every run at a file or folder."""
    return [diagnose_run(run) for run in read(path, progress=progress)]
