"""A sign that fails on a run is told as such, and the others answer all the same."""

from __future__ import annotations

import importlib.util

import pytest

from wheeltapper.diagnosis import diagnose
from wheeltapper.errors import ContractError
from wheeltapper.signs import plateau, too_slow
from wheeltapper.testing import make_run

LOSS = [2.0, 1.5, float("nan"), float("nan"), float("nan"), float("nan")]


@pytest.fixture
def as_for_users(monkeypatch: pytest.MonkeyPatch, signs_fail_loudly: None) -> None:
    spec = importlib.util.find_spec("wheeltapper.diagnosis.diagnose")
    assert spec is not None
    assert spec.loader is not None
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    monkeypatch.setattr(diagnose, "_answers", fresh._answers)


def fails() -> None:
    raise ValueError("zero-size array")


def asks_for_more(no_such_signal: object) -> object:
    return no_such_signal


def test_the_others_answer(monkeypatch: pytest.MonkeyPatch, as_for_users: None) -> None:
    monkeypatch.setattr(plateau, "look", fails)
    told = diagnose.diagnose_run(make_run({"train/loss": LOSS}))
    assert told.verdict == "ill"
    assert {name: u.why for name, u in told.unknowns}["plateau"] == f"{diagnose.FAILED} (ValueError: zero-size array)"


def test_a_broken_contract_is_not_hidden(monkeypatch: pytest.MonkeyPatch, as_for_users: None) -> None:
    monkeypatch.setattr(too_slow, "look", asks_for_more)
    with pytest.raises(ContractError, match="no_such_signal"):
        diagnose.diagnose_run(make_run({"train/loss": LOSS}))


def test_tests_see_the_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plateau, "look", fails)
    with pytest.raises(ValueError, match="zero-size"):
        diagnose.diagnose_run(make_run({"train/loss": LOSS}))
