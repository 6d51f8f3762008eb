"""The ledger: a crash at any byte loses at most the line being written, and nothing is counted twice."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheeltapper.errors import InputError
from wheeltapper.trial.ledger import (
    Ledger,
    books_of,
    hash_of,
    line_of,
    outcome_from,
    outcome_record,
    read_ledger,
    verdict_from,
    verdict_record,
)  # fmt: skip
from wheeltapper.trial.model import Outcome, Verdict


def sent(job: str, arm: str = "control", seed: int = 1, attempt: int = 1) -> dict[str, object]:
    return {"kind": "submitted", "job": job, "arm": arm, "seed": seed, "attempt": attempt, "out": "/x"}


def ended(job: str, value: float = 1.0) -> dict[str, object]:
    return {"kind": "ended", "job": job, "seconds": 2.0, "outcome": outcome_record(Outcome(1, value, False))}


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 400), junk=st.binary(max_size=20))
def test_a_cut_ledger_reads_as_its_whole_lines_and_can_be_continued(cut: int, junk: bytes) -> None:
    records = [{"kind": "plan", "n": i, "text": "é\n" * i} for i in range(6)]
    data = b"".join(line_of(r) for r in records)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "ledger.jsonl"
        kept = data[: min(cut, len(data))]
        path.write_bytes(kept + junk.replace(b"\n", b""))
        whole = kept.count(b"\n")
        assert [r["n"] for r in read_ledger(path)][:whole] == list(range(whole))
        with Ledger(Path(place)) as ledger:
            ledger.add("session", n=99)
        assert [r["n"] for r in read_ledger(path)][-1] == 99
        assert len(list(read_ledger(path))) in (whole + 1, whole + 2)


def test_a_flipped_bit_costs_its_line_only(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        for i in range(3):
            ledger.add("session", n=i)
    path = tmp_path / "ledger.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"n": 1', b'"n": 7')
    path.write_bytes(b"".join(lines))
    assert [r["n"] for r in read_ledger(path)] == [0, 2]


def test_two_writers_are_refused(tmp_path: Path) -> None:
    with Ledger(tmp_path), pytest.raises(InputError, match="another process"):
        Ledger(tmp_path)
    Ledger(tmp_path).close()


def test_an_end_told_twice_counts_once() -> None:
    books = books_of([sent("a"), ended("a", 1.0), ended("a", 5.0)])
    assert books.outcomes["control"][1].value == 1.0
    assert books.seconds == 2.0


def test_of_two_attempts_that_both_ended_the_first_counts() -> None:
    books = books_of([sent("a"), sent("b", attempt=2), ended("b", 2.0), ended("a", 1.0)])
    assert books.outcomes["control"][1].value == 2.0
    assert books.done == {"control": 2} or len(books.outcomes["control"]) == 1
    assert not books.open


def test_a_lost_attempt_costs_time_and_counts_nothing() -> None:
    books = books_of([sent("a"), {"kind": "lost", "job": "a", "seconds": 3.0}])
    assert books.outcomes == {}
    assert books.seconds == 3.0
    assert books.tries == {("control", 1): 1}


@pytest.mark.parametrize("value", [1.5, math.nan, math.inf, -math.inf, None])
def test_outcomes_survive_the_ledger(value: float | None) -> None:
    outcome = Outcome(3, value, None, 10.0, ((1.0, 2.0), (2.0, math.nan)), "a note", 4.0, (1e-3, 1e-5))
    back = outcome_from(outcome_record(outcome))
    assert repr(back) == repr(outcome)


def test_verdicts_survive_the_ledger() -> None:
    verdict = Verdict("confirmed", "why", 4, -0.5, -math.inf, math.inf, 0.01, None, "removed", True)
    assert verdict_from(verdict_record(verdict)) == verdict


def test_long_curves_are_thinned_with_both_ends() -> None:
    curve = tuple((float(i), float(i)) for i in range(10_001))
    kept = outcome_record(Outcome(1, 1.0, None, 0, curve))["curve"]
    assert len(kept) <= 301
    assert kept[0] == [0.0, 0.0]
    assert kept[-1] == [10_000.0, 10_000.0]


def test_hashes_of_missing_and_changed_files(tmp_path: Path) -> None:
    file = tmp_path / "a"
    assert hash_of(file) is None
    file.write_text("one")
    first = hash_of(file)
    file.write_text("two")
    assert first != hash_of(file)
