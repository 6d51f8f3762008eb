"""Shared fixtures. `shared/runs` (real labelled records) lies beside the checkout, where it is given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from shared_folder import shared_runs_dir
from wheeltapper.judge import evidence

# The same examples every time, so that a change is judged and not the dice; the nightly run sets this variable and looks for new ones.
settings.register_profile("fixed", derandomize=True)
if not os.environ.get("WHEELTAPPER_RANDOM"):
    settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def signs_fail_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    """For users an observation or a sign that fails is one more "could not be looked for"; here it is a failed test."""
    monkeypatch.setattr(evidence, "FAILS", ())


@pytest.fixture(scope="session")
def shared_runs() -> Path:
    folder = shared_runs_dir()
    if folder is None:
        pytest.skip("the labelled records (../shared/runs) are not on this machine")
    return folder
