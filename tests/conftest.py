"""Shared fixtures. `shared/runs` (real labelled records) lies beside the checkout, where it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared_folder import shared_runs_dir


@pytest.fixture(scope="session")
def shared_runs() -> Path:
    folder = shared_runs_dir()
    if folder is None:
        pytest.skip("the labelled records (../shared/runs) are not on this machine")
    return folder
