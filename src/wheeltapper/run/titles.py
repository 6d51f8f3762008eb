"""The names that runs go by: those people gave them, and no two alike."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from wheeltapper.run.model import Run

# Names that a tool gave: a number of a version, a key, a time. The run's own name, or the folder above, says more.
_GIVEN = re.compile(
    r"(version_\d+|(offline-)?run-\d{8}_\d{6}-\w+|latest-run|[0-9a-f]{32}|[0-9a-f-]{36}|\d{2}-\d{2}-\d{2}|files|logs?|out(put)?)"
)


def with_names(runs: list[Run]) -> list[Run]:
    """The runs with names to tell them by."""
    named = [replace(run, name=_title(run)) for run in runs]
    again = Counter(run.name for run in named)
    return [run if again[run.name] == 1 else replace(run, name=_longer(run)) for run in named]


def _title(run: Run) -> str:
    head, _, key = run.name.rpartition("/")
    if not _GIVEN.fullmatch(key):
        return run.name
    own = run.fact("run_name")
    if isinstance(own, str) and own.strip():
        return f"{head}/{own.strip()}" if head else own.strip()
    return run.name


def _longer(run: Run) -> str:
    """The name with the folder above it."""
    above = Path(run.root).parent.name
    return f"{above}/{run.name}" if above else run.name
