"""Folders cut into units, the index, the parallel scan."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from made_fleet import fleet_at, write_run
from wheeltapper import api
from wheeltapper.errors import InputError
from wheeltapper.fleet import content, pool
from wheeltapper.fleet.row import row_of
from wheeltapper.fleet.scan import Fleet, scan
from wheeltapper.fleet.units import units_of
from wheeltapper.fleet.worker import Outcome, Task
from wheeltapper.judge.model import Lines

CASES = Path(__file__).resolve().parents[2] / "examples" / "cases"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    fleet_at(tmp_path / "runs", 10)
    return tmp_path / "runs"


def scanned(runs: Path, **options: object) -> Fleet:
    return scan([runs], index_file=runs.parent / "index.sqlite", workers=0, **options)  # type: ignore[arg-type]


def test_a_folder_of_runs_is_cut_and_a_run_is_not(runs: Path) -> None:
    assert len(list(units_of(runs))) == 10
    one = runs / "group00" / "run-00000"
    (one / "checkpoints").mkdir()
    (one / "checkpoints" / "step_10.txt").write_text("saved")
    assert [unit.path for unit in units_of(one)] == [one]
    assert len(list(units_of(runs))) == 10


def test_settings_above_many_runs_belong_to_each(runs: Path) -> None:
    group = runs / "group00"
    (group / "base.yaml").write_text("momentum: 0.85\n")
    units = list(units_of(runs))
    assert {unit.shared for unit in units} == {(group / "base.yaml",)}
    rows = {m.label: m.row for m in scanned(runs).members}
    assert rows["run-00003"].settings["optimizer.momentum"] == 0.85


@pytest.mark.parametrize("folder", sorted(p.name for p in CASES.iterdir() if p.is_dir())[:2])
def test_units_are_judged_as_the_whole_folder_is(folder: str, tmp_path: Path) -> None:
    top = tmp_path / "several"
    for name in ("one", "two"):
        shutil.copytree(CASES / folder, top / name)
    found = {m.path: (m.row.verdict, m.row.p_ill, m.row.cause) for m in scan([top], index_file=tmp_path / "i", workers=0).members}
    whole = [row_of(d, str(top)) for d in api.diagnose(top)]
    assert found == {str(top / row.place): (row.verdict, row.p_ill, row.cause) for row in whole}


def test_what_is_known_is_not_read_again(runs: Path) -> None:
    first, second = scanned(runs), scanned(runs)
    assert (first.read, second.read) == (10, 0)
    assert [m.row for m in first.members] == [m.row for m in second.members]
    log = runs / "group00" / "run-00004" / "metrics.jsonl"
    log.write_text(log.read_text() + '{"step": 610, "train/loss": 0.4}\n')
    assert scanned(runs).read == 1


def test_a_run_that_was_touched_or_moved_is_known_by_its_content(runs: Path) -> None:
    scanned(runs)
    os.utime(runs / "group00" / "run-00001" / "metrics.jsonl", (1, 1))
    shutil.move(runs / "group00" / "run-00002", runs / "elsewhere" / "run-00002")
    again = scanned(runs)
    assert again.read == 0
    assert len(again.members) == 10


def test_a_changed_judge_judges_again(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned(runs)
    assert scanned(runs, lines=Lines(0.8, 0.05)).read == 10
    content.judge_key.cache_clear()
    monkeypatch.setattr(content, "__version__", "99")
    assert scanned(runs).read == 10
    content.judge_key.cache_clear()


def test_the_judge_is_known_by_its_fitted_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge" / "fitted.json").write_text("{}")
    monkeypatch.setattr(content, "PACKAGE", tmp_path)
    before = content.judge_key.__wrapped__(Lines())
    (tmp_path / "judge" / "fitted.json").write_text('{"base_rate": 0.3}')
    assert content.judge_key.__wrapped__(Lines()) != before


@pytest.mark.parametrize("damage", [b"not a database at all", b""])
def test_a_broken_index_is_built_anew(runs: Path, damage: bytes) -> None:
    index = runs.parent / "index.sqlite"
    scanned(runs)
    whole = index.read_bytes()
    for tail in ("-wal", "-shm"):
        index.with_name(index.name + tail).unlink(missing_ok=True)
    index.write_bytes(damage or whole[: len(whole) // 2])
    found = scanned(runs)
    assert len(found.members) == 10
    assert any("built anew" in note for note in found.notes)
    assert scanned(runs).read == 0


def test_an_index_of_another_schema_is_set_aside(runs: Path) -> None:
    index = runs.parent / "index.sqlite"
    with sqlite3.connect(index) as db:
        db.execute("PRAGMA user_version = 7")
    assert len(scanned(runs).members) == 10
    assert list(runs.parent.glob("index.sqlite.broken-*"))


def test_an_index_that_cannot_be_kept_costs_no_answer(runs: Path) -> None:
    (runs.parent / "file").write_text("")
    found = scan([runs], index_file=runs.parent / "file" / "index.sqlite", workers=0)
    assert len(found.members) == 10
    assert "nothing is remembered" in found.notes[0]


def test_a_run_that_is_written_while_it_is_read_is_not_remembered(runs: Path) -> None:
    log = runs / "group00" / "run-00000" / "metrics.jsonl"

    def writing(tasks: list[Task], _workers: int) -> list[Outcome]:
        outcomes = list(pool.run_tasks(tasks, 0))
        log.write_text(log.read_text() + '{"step": 900, "train/loss": 0.1}\n')
        return outcomes

    scanned(runs, engine=writing)
    assert scanned(runs).read == 1


def test_a_folder_that_is_not_there(runs: Path) -> None:
    with pytest.raises(InputError, match="there is no file or folder"):
        scan([runs / "nowhere"])
    found = scan([runs, runs / "nowhere"], index_file=runs.parent / "i", workers=0)
    assert len(found.members) == 10
    assert "nowhere" in found.problems[0][0]


def test_a_run_that_vanishes_between_looking_and_reading(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    units = list(units_of(runs))
    shutil.rmtree(units[0].path)
    monkeypatch.setattr("wheeltapper.fleet.scan.units_of", lambda _path: units)
    found = scanned(runs)
    assert len(found.members) == 9
    assert "went away" in found.problems[0][1]


def test_a_worker_that_dies_costs_one_unit(runs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    killer = tmp_path / "worker.py"
    killer.write_text(
        "import os, sys\n"
        "from wheeltapper.fleet import worker\n"
        "plain = worker.judged\n"
        "def judged(task):\n"
        "    if task.path.endswith('run-00005'):\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return plain(task)\n"
        "worker.judged = judged\n"
        "worker.serve_tasks()\n"
    )
    real = pool.subprocess.Popen

    def spawn(command: list[str], **options: object) -> object:
        return real([sys.executable, "-P", str(killer)], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(pool.subprocess, "Popen", spawn)
    found = scan([runs], index_file=tmp_path / "i", workers=2)
    assert len(found.members) == 9
    assert [(Path(path).name, "signal 9" in why) for path, why in found.problems] == [("run-00005", True)]


def test_workers_and_one_process_say_the_same(runs: Path, tmp_path: Path) -> None:
    alone, together = scanned(runs), scan([runs], index_file=tmp_path / "other", workers=2)
    assert [m.row for m in alone.members] == [m.row for m in together.members]


def test_nothing_in_the_folder_we_stand_in_is_executed(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "msgspec.py").write_text("open('sprung', 'w')\n")
    monkeypatch.chdir(trap)
    assert len(scan([runs], index_file=tmp_path / "i", workers=1).members) == 10
    assert not (trap / "sprung").exists()


def test_a_name_that_is_no_utf8(runs: Path) -> None:
    write_run(Path(os.fsdecode(os.fsencode(runs / "group00") + b"/run-\xff")), 99)
    found = scanned(runs)
    assert len(found.members) == 10
    assert "UTF-8" in found.problems[0][1]
