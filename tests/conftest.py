"""Shared fixtures. `shared/runs` (real labelled records) lies beside the checkout, where it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def shared_runs_dir() -> Path | None:
    folder = ROOT.parent / "shared" / "runs"
    return folder if (folder / "MANIFEST.csv").is_file() else None


@pytest.fixture(scope="session")
def shared_runs() -> Path:
    folder = shared_runs_dir()
    if folder is None:
        pytest.skip("the labelled records (../shared/runs) are not on this machine")
    return folder
