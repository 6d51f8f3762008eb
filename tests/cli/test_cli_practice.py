"""`wheeltapper practice`: a small histogram with the value marked, and the same as JSON."""

from __future__ import annotations

import json

import pytest

from wheeltapper.cli.main import main


def test_a_histogram_with_the_value_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["practice", "optimizer.lr", "--optimizer", "adamw", "--value", "0.26"]) == 0
    told = capsys.readouterr().out
    assert "◀ 0.26" in told
    assert "AdamW" in told
    assert "public runs" in told


def test_a_key_is_as_good_as_a_knob_and_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["practice", "learning_rate", "--json", "--value", "1e-3"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["knob"] == "optimizer.lr"
    assert sum(told["counts"]) == told["n"]
    assert 0 <= told["rank"]["below"] <= 1


def test_what_is_not_known_is_said_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["practice", "gan.n_critic"]) == 3
    assert "Too few" in capsys.readouterr().out
    assert main(["practice", "frobnicate"]) == 2
    assert "no setting is named" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["fast", "nan", "1e400"])
def test_a_value_that_is_no_number_is_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["practice", "optimizer.lr", "--value", value])
    assert "not a finite number" in capsys.readouterr().err
