"""Each check of the played program finds its fault in a program of another hand, and nothing certain in the healthy twin."""

from __future__ import annotations

import pytest
from reading_text import findings_of
from twins import TWINS


@pytest.mark.parametrize("id", TWINS)
def test_the_fault_is_found(id: str) -> None:
    text, old, new = TWINS[id]
    assert old in text
    assert id in {f.id for f in findings_of(text.replace(old, new, 1))}


@pytest.mark.parametrize("id", TWINS)
def test_the_healthy_twin_is_clean(id: str) -> None:
    assert [f"{f.id}: {f.summary}" for f in findings_of(TWINS[id][0]) if f.grade == "is"] == []


@pytest.mark.parametrize("id", TWINS)
def test_nothing_else_is_proved_of_the_fault(id: str) -> None:
    text, old, new = TWINS[id]
    assert {f.id for f in findings_of(text.replace(old, new, 1)) if f.grade == "is"} <= {id}
