"""A sign or an observation that fails on a run is told as such, and the others answer all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from wheeltapper.errors import ContractError
from wheeltapper.judge import evidence
from wheeltapper.judge.diagnose import diagnose_run
from wheeltapper.observations import observations
from wheeltapper.rules.signs import signs
from wheeltapper.testing import make_run

LOSS = [2.0, 1.5, float("nan"), float("nan"), float("nan"), float("nan")]


def fails() -> None:
    raise ValueError("zero-size array")


def asks_for_more(no_such_part: object) -> object:
    return no_such_part


def break_sign(monkeypatch: pytest.MonkeyPatch, id_: str, look: Callable[..., Any]) -> None:
    changed = tuple(replace(s, look=look) if s.id == id_ else s for s in signs())
    monkeypatch.setattr(evidence, "signs", lambda: changed)


def break_observation(monkeypatch: pytest.MonkeyPatch, id_: str, observe: Callable[..., Any]) -> None:
    changed = tuple(replace(o, observe=observe) if o.id == id_ else o for o in observations())
    monkeypatch.setattr(evidence, "observations", lambda: changed)


def unknowns(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(evidence, "FAILS", (Exception,))  # as for users
    told = diagnose_run(make_run({"train/loss": LOSS}))
    return {name: unknown.why for name, unknown in told.unknowns}


def test_the_others_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    break_sign(monkeypatch, "plateau", fails)
    told = unknowns(monkeypatch)
    assert told["plateau"] == f"{evidence.FAILED.format(kind='sign')} (ValueError: zero-size array)"
    assert sum("zero-size" in why for why in told.values()) == 1


def test_the_others_answer_beside_a_failing_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    break_observation(monkeypatch, "skill", fails)
    told = unknowns(monkeypatch)
    assert told["skill"] == f"{evidence.FAILED.format(kind='observation')} (ValueError: zero-size array)"
    assert sum("zero-size" in why for why in told.values()) == 1


def test_a_broken_contract_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    break_sign(monkeypatch, "too-slow", asks_for_more)
    with pytest.raises(ContractError, match="no_such_part"):
        unknowns(monkeypatch)


def test_tests_see_the_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    break_sign(monkeypatch, "plateau", fails)
    with pytest.raises(ValueError, match="zero-size"):
        diagnose_run(make_run({"train/loss": LOSS}))
