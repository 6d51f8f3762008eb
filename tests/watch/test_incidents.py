"""Alarms: once, when they stand; withdrawn when they do not."""

from __future__ import annotations

import json
from dataclasses import replace

from wheeltapper.finding import Finding, Grade, Severity
from wheeltapper.judge.model import Diagnosis, Progress
from wheeltapper.run.model import Run
from wheeltapper.watch import Ledger


def seen(*ids: str, at: float = 10.0, grade: Grade = "is-p", onset: float = 5.0, severity: Severity = "ill") -> Diagnosis:
    findings = tuple(Finding(id, f"{id} is seen", severity, grade, clock="step", onset=onset) for id in ids)
    run = Run("exp", "/runs/exp", (), {})
    return Diagnosis(run, "ill" if ids else "sound", "", findings=findings, progress=Progress(at=at))


def kinds(ledger: Ledger, *looks: Diagnosis, first: bool = False) -> list[list[str]]:
    return [
        [f"{i.kind} {i.id}" for i in ledger.judge("k", d, 0.0, name="exp", first=first and not n)] for n, d in enumerate(looks)
    ]


def test_what_statistics_says_must_be_seen_twice() -> None:
    assert kinds(Ledger(), seen(), seen("spiked"), seen("spiked"), seen("spiked")) == [[], [], ["alarm spiked"], []]


def test_what_comes_and_goes_is_not_raised() -> None:
    assert kinds(Ledger(), seen("spiked"), seen(), seen("spiked"), seen()) == [[], [], [], []]


def test_what_arithmetic_decides_is_raised_at_once_and_once() -> None:
    nan = seen("not-finite", grade="is")
    assert kinds(Ledger(), seen(), nan, nan, nan) == [[], ["alarm not-finite"], [], []]


def test_what_stood_there_before_we_came_is_raised_at_once() -> None:
    assert kinds(Ledger(), seen("diverged"), seen("diverged"), first=True) == [["alarm diverged"], []]


def test_suspicions_and_notes_raise_nothing() -> None:
    guess, note = seen("flat", grade="suspected"), seen("flat", severity="watch", grade="is")
    assert kinds(Ledger(), guess, guess, guess, note, note) == [[], [], [], [], []]


def test_an_alarm_that_is_gone_is_withdrawn_once_and_not_raised_again() -> None:
    d = seen("diverged", onset=5)
    told = kinds(Ledger(), d, d, seen(at=20), seen(at=30), seen(at=40), d, d, d)
    assert told == [[], ["alarm diverged"], [], ["withdrawn diverged"], [], [], [], []]


def test_an_alarm_that_a_graver_one_outdoes_is_not_withdrawn() -> None:
    rose, nan = seen("diverged"), seen("not-finite", grade="is")
    both = replace(nan, findings=(*nan.findings, *seen("diverged", severity="watch").findings))
    assert kinds(Ledger(), rose, rose, both, both, both)[1:] == [["alarm diverged"], ["alarm not-finite"], [], []]


def test_the_same_sign_that_begins_anew_is_another_event() -> None:
    d, later = seen("diverged", onset=5), seen("diverged", onset=50, at=60)
    told = kinds(Ledger(), d, d, seen(at=20), seen(at=30), later, later, later)
    assert told[4:] == [[], ["alarm diverged"], []]


def test_a_ledger_survives_being_written_down() -> None:
    ledger, d = Ledger(), seen("diverged")
    kinds(ledger, d)
    again = Ledger.from_json(json.loads(json.dumps(ledger.to_json())))
    assert kinds(again, d, d) == [["alarm diverged"], []]
    assert again.open("k") == ["diverged"]
    assert len(again.once("k", "exp", "silent", "x", 0.0)) == 1
    assert Ledger.from_json(again.to_json()).once("k", "exp", "silent", "x", 0.0) == []
