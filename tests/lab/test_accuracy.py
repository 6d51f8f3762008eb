"""The fit can be repeated from what was seen, and its page says how right it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheeltapper.errors import InputError
from wheeltapper.judge.tables import tables
from wheeltapper.lab.accuracy import area, page
from wheeltapper.lab.fit import judge_with
from wheeltapper.lab.labelled import load, save

SEEN = Path(__file__).resolve().parents[2] / "research" / "seen.json.gz"


def test_what_was_seen_is_what_the_tables_were_fitted_on() -> None:
    runs = [run for run in load(SEEN) if not run.bare]
    held = tables()
    assert (sum(r.ill for r in runs), sum(not r.ill for r in runs)) == (held.ill, held.healthy)
    assert len({r.family for r in runs}) > 100
    counted = held.states["train-gain"]
    assert sum(counted.healthy) == sum("train-gain" in r.states for r in runs if not r.ill)


def test_the_page_has_its_figures(tmp_path: Path) -> None:
    runs = load(SEEN)[:300]
    save(runs, tmp_path / "some.json.gz")
    assert load(tmp_path / "some.json.gz") == runs
    text = page(tables(), judge_with(tables(), runs))
    assert "| all | " in text
    assert text.count("## ") == 3


def test_the_area_is_that_under_the_curve() -> None:
    assert area([0.9, 0.8], [0.1, 0.8]) == pytest.approx(0.875)


def test_another_file_is_refused_with_words(tmp_path: Path) -> None:
    (tmp_path / "x.json.gz").write_bytes(b"no")
    with pytest.raises(InputError, match="does not hold what was seen"):
        load(tmp_path / "x.json.gz")
