"""One file never costs another: whatever a file does to a reader is a note about that file."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path
from types import ModuleType

import pytest

from wheeltapper import limits
from wheeltapper.reading import epoch_summary, generic_jsonl, readings_of
from wheeltapper.reading.follow import Follower
from wheeltapper.run import gather
from wheeltapper.run.gather import read_runs


def log(folder: Path, key: str = "loss", rows: int = 40) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "log.jsonl"
    file.write_text("".join(json.dumps({"step": i, key: 2.0 / (i + 1)}) + "\n" for i in range(rows)))
    return file


@pytest.mark.parametrize("key", ['lo"ss', "lo\\ss", "lo\nss", "lo\x00ss", "", " ", "é", "\u2028", "a.b[0]"])
def test_any_key_of_a_json_line_is_a_name(tmp_path: Path, key: str) -> None:
    (reading,) = readings_of(log(tmp_path, key))
    named = [p for p in reading.points if p.name.strip() == key.strip()]
    if key.strip():
        assert [len(p.values) for p in named] == [40]
    assert not [note for note in reading.notes if "Error" in note.text]


def test_a_key_that_no_struct_can_have_leaves_the_others(tmp_path: Path) -> None:
    log(tmp_path / "a", 'lo"ss')
    log(tmp_path / "b")
    assert [run.name for run in read_runs(tmp_path)] == ["a", "b"]


def break_reader(monkeypatch: pytest.MonkeyPatch, reader: ModuleType, error: BaseException) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(reader, "read", fail)


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError(), MemoryError(), AssertionError(), UnicodeError()])
def test_a_reader_that_fails_costs_its_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    good = tmp_path / "good.csv"
    good.write_text("step,loss\n" + "".join(f"{i},{2 / (i + 1)}\n" for i in range(30)))
    log(tmp_path, rows=30)
    break_reader(monkeypatch, generic_jsonl, error)
    (run,) = read_runs(tmp_path)
    assert "train/loss" in run.series
    notes = [note for note in run.notes if note.file.endswith("log.jsonl")]
    assert notes
    assert notes[0].level == "lost"


def test_a_note_says_where_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> None:
        epoch_summary.read(None)  # type: ignore[arg-type]

    monkeypatch.setattr(generic_jsonl, "read", read)
    notes = [note.text for reading in readings_of(log(tmp_path)) for note in reading.notes]
    assert any(re.search(r"\(in reading/\w+\.py:\d+\)", text) for text in notes), notes


def test_a_sniff_that_fails_claims_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(head: object) -> float:
        raise ZeroDivisionError

    monkeypatch.setattr(epoch_summary, "sniff", fail)
    assert readings_of(log(tmp_path))[0].points


def test_a_reader_that_does_not_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(path: Path, tail: object = None) -> None:
        while True:
            pass

    monkeypatch.setattr(limits, "SECONDS", 0.2)
    monkeypatch.setattr(generic_jsonl, "read", spin)
    notes = [note.text for reading in readings_of(log(tmp_path)) for note in reading.notes]
    assert any("stopped" in text for text in notes), notes
    (reading,) = Follower().readings(log(tmp_path))
    assert any("stopped" in note.text for note in reading.notes)


def test_a_regular_expression_without_end_is_stopped() -> None:
    failure = limits.guarded(lambda: re.match(r"(a+)+$", "a" * 40 + "b"), seconds=0.2)
    assert isinstance(failure, limits.Failure)
    assert failure.over_budget
    assert limits.guarded(lambda: 1) == 1  # and the next has its own time


def test_an_outer_limit_still_holds_inside_a_larger_one() -> None:
    def spin() -> None:
        while True:
            limits.spend(1000)

    failure = limits.guarded(lambda: limits.guarded(spin, seconds=50.0), seconds=0.2)
    assert isinstance(failure, limits.Failure)
    assert failure.over_budget


def test_what_cannot_be_put_together_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log(tmp_path)
    (tmp_path / "bad.csv").write_text("step,loss\n" + "".join(f"{i},{i}\n" for i in range(9)))
    merge = gather.merge

    def picky(readings: list, **rest: object) -> object:
        if any(r.file.endswith("bad.csv") for r in readings):
            raise KeyError("bad")
        return merge(readings, **rest)

    monkeypatch.setattr(gather, "merge", picky)
    runs = read_runs(tmp_path)
    assert any("train/loss" in run.series for run in runs)
    assert any("left out: KeyError" in note.text for run in runs for note in run.notes)


def test_pipes_sockets_and_devices_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.log")
    with socket.socket(socket.AF_UNIX) as open_socket:
        open_socket.bind(str(tmp_path / "sock.log"))
        (tmp_path / "zero.log").symlink_to("/dev/zero")
        log(tmp_path)
        (run,) = read_runs(tmp_path)
        assert "train/loss" in run.series
        for name in ("train.log", "sock.log", "zero.log"):
            (reading,) = readings_of(tmp_path / name)
            assert "not opened" in reading.notes[0].text
