"""What a record lacks, told in the order in which it would help."""

from __future__ import annotations

from wheeltapper.judge.diagnose import diagnose_run
from wheeltapper.judge.missing import NAMED
from wheeltapper.testing import make_run


def lacks(*names: str) -> list[str]:
    return [m.what for m in diagnose_run(make_run({name: [1.0, 0.9, 0.8, 0.7] for name in names})).missing]


def test_columns_without_names_cannot_be_judged_and_that_comes_first() -> None:
    assert lacks("1", "2")[0] == NAMED == "a loss or a score, under its name"
    assert lacks()[0] == NAMED


def test_a_loss_or_a_score_is_enough_of_a_name() -> None:
    assert NAMED not in lacks("train/loss")
    assert NAMED not in lacks("val/accuracy", "1")
