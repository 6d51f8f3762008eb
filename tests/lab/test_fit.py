"""The fit of the weights: judgements that are too strong come down, and what is measured is the product's own formula."""

from __future__ import annotations

import pytest

from wheeltapper.causes._weights import Weights
from wheeltapper.diagnosis.rank import Candidate, probabilities
from wheeltapper.finding import Evidence
from wheeltapper.lab.fit import Item, calibration_error, fit, judge, leave_one_out, shares


def item(system: str, loud_is_right: bool) -> Item:
    loud = Candidate("loud", -1.0, ("ill",), (Evidence(5.0, "said with confidence", "hint"),))
    quiet = Candidate("quiet", -1.0, ("ill",), (Evidence(1.0, "said in passing", "hint"),))
    return Item(system, (loud, quiet), ("ill",), (loud_is_right, not loud_is_right))


# The loud cause is right in one run of four, whatever its evidence says.
ITEMS = [item(system, number == 0) for system in ("a", "b", "c") for number in range(4)]


def test_evidence_that_is_mostly_wrong_is_weighed_down() -> None:
    found = fit(ITEMS)
    assert found.of("loud", "hint") < 0.7 < 1.0 < found.of("quiet", "hint")
    assert found.of("loud", "proof") == found.of("never-seen", "hint") == 1.0
    assert judge(ITEMS, found)["bits"] < judge(ITEMS, Weights())["bits"] - 0.5


def test_a_cause_seen_too_seldom_keeps_its_judgement() -> None:
    assert fit(ITEMS[:3]).factors == {}


def test_other_systems_teach_the_one_left_out() -> None:
    for before, after in leave_one_out(ITEMS).values():
        assert after["bits"] < before["bits"]


def test_shares_are_those_of_the_ranking() -> None:
    one = ITEMS[0]
    assert shares(one, Weights())[0] == pytest.approx(list(probabilities(one.candidates, one.ill, Weights())[0].values()))


def test_calibration_error() -> None:
    assert calibration_error([(0.8, 1.0)] * 4 + [(0.8, 0.0)]) == pytest.approx(0.32)  # fifths of one run each
    assert calibration_error([]) == 0.0
