"""Live runs, looked at while they are written."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from writers import Clock, Live

from wheeltapper import api
from wheeltapper.prognosis.forecast import Forecast
from wheeltapper.prognosis.goal import Goal, goal_of
from wheeltapper.watch import Watcher
from wheeltapper.watch import watcher as module

JUDGED_AS = "nan-batch"  # how it is told is tested here, not what the judge says


def one(watcher: Watcher) -> Any:
    return next(iter(watcher.runs.values()))


def test_a_healthy_run_raises_nothing_from_its_first_row_to_its_last(tmp_path: Path) -> None:
    live, clock = Live(tmp_path, total=120), Clock()
    watcher = Watcher([live.folder], clock=clock)
    for step in range(24):
        live.grow(5)
        clock.now += 60
        new = watcher.look(judge_now=True)
        assert [i for i in new if i.kind == "alarm"] == [], step
    assert [i.kind for i in watcher.incidents] == ["finished"]
    assert watcher.done
    assert watcher.verdicts == ["sound"]


def test_nan_is_said_at_once_and_once(tmp_path: Path) -> None:
    live, clock = Live(tmp_path), Clock()
    watcher = Watcher([live.folder], clock=clock)
    live.grow(40)
    assert watcher.look() == []
    live.grow(3, broken=True)
    clock.now += 60
    assert [i.id for i in watcher.look() if i.kind == "alarm"] == ["not-finite"]
    for _ in range(4):
        live.grow(3, broken=True)
        clock.now += 60
        watcher.look(judge_now=True)
    assert [i.id for i in watcher.incidents].count("not-finite") == 1
    assert one(watcher).diagnosis.verdict == "ill"


def test_a_folder_that_comes_later(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    watcher = Watcher([folder])
    assert watcher.look() == []
    assert "no" in watcher.waiting[folder]
    assert not watcher.done
    live = Live(tmp_path, "later")
    live.grow(20)
    watcher.look()
    assert watcher.waiting == {}
    assert one(watcher).run.name == "later"


def test_files_that_come_later_join_the_run(tmp_path: Path) -> None:
    live = Live(tmp_path)
    live.grow(20)
    watcher = Watcher([live.folder])
    watcher.look()
    (live.folder / "eval.jsonl").write_text("".join(f'{{"epoch": {e}, "test_psnr": {20 + e}}}\n' for e in range(5)))
    watcher.look(judge_now=True)
    assert any("psnr" in name for name in one(watcher).run.series)


def test_what_was_watched_is_what_diagnose_reads_when_it_is_over(tmp_path: Path) -> None:
    live, clock = Live(tmp_path), Clock()
    watcher = Watcher([live.folder], stale=600, clock=clock)
    for n in (7, 30, 1, 12):
        live.grow(n)
        watcher.look(judge_now=True)
    asked = {id for id, unknown in one(watcher).diagnosis.unknowns if "over" in unknown.why}
    assert "stopped-early" in asked  # of a run that goes on it is not asked
    clock.now += 700
    watcher.look()
    [told] = api.diagnose(live.folder)
    mine = one(watcher).diagnosis
    assert (mine.verdict, mine.headline, mine.findings) == (told.verdict, told.headline, told.findings)
    assert {n: s.values.tolist() for n, s in mine.run.series.items()} == {n: s.values.tolist() for n, s in told.run.series.items()}


def test_a_writer_in_another_thread(tmp_path: Path) -> None:
    live = Live(tmp_path)

    def write() -> None:
        with live.log.open("a") as file:
            for _ in range(60):
                row = live.row()
                file.write(row[:7])  # half a line
                file.flush()
                time.sleep(0.002)
                file.write(row[7:])
                file.flush()

    thread = threading.Thread(target=write)
    watcher = Watcher([live.folder])
    thread.start()
    while thread.is_alive():
        watcher.look()
    thread.join()
    watcher.look(judge_now=True)
    loss = one(watcher).run.series["train/loss"]
    assert loss.at.tolist() == list(range(60))
    assert [i for i in watcher.incidents if i.kind == "alarm"] == []


def test_a_log_that_is_rotated(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    log = folder / "train.log"

    def lines(a: int, b: int) -> str:
        return "".join(f"step {i} loss {2 / (i + 1) + 0.1:.4f} lr 0.001\n" for i in range(a, b))

    log.write_text(lines(0, 50))
    watcher = Watcher([folder])
    watcher.look()
    os.rename(log, folder / "train.1.log")
    log.write_text(lines(50, 80))
    watcher.look(judge_now=True)
    [run] = [w.run for w in watcher.runs.values()]
    assert run.series["train/loss"].at.tolist() == list(range(80)) if "train/loss" in run.series else True
    assert max(len(s) for s in run.series.values()) == 80


def test_silence_and_its_end_are_said_once(tmp_path: Path) -> None:
    live, clock = Live(tmp_path), Clock()
    live.grow(20)
    os.utime(live.log, (clock.now, clock.now))
    watcher = Watcher([live.folder], stale=600, clock=clock)
    assert watcher.look() == []
    said = []
    for _ in range(5):
        clock.now += 300
        said += [i.kind for i in watcher.look()]
    assert said == ["silent"]
    assert watcher.done
    live.grow(1)
    assert [i.kind for i in watcher.look(judge_now=True)] == ["again"]
    assert one(watcher).state == "running"


def test_a_file_from_the_future_is_not_silent_and_one_long_past_is(tmp_path: Path) -> None:
    live, clock = Live(tmp_path), Clock()
    live.grow(20)
    for offset, state in ((+5000, "running"), (-5000, "silent")):
        for file in live.folder.iterdir():
            os.utime(file, (clock.now + offset, clock.now + offset))
        watcher = Watcher([live.folder], stale=600, clock=clock)
        watcher.look()
        assert one(watcher).state == state


def test_a_crash_is_seen_though_no_point_follows(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {i}/500 loss {2 / (i + 1) + 0.1:.4f} lr 0.001\n" for i in range(100)))
    watcher = Watcher([log])
    watcher.look()
    with log.open("a") as file:
        file.write('Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    step()\nRuntimeError: CUDA error\n')
    new = watcher.look(judge_now=True)
    assert one(watcher).state == "crashed"
    assert [i.kind for i in new] == ["crashed"]
    with log.open("a") as file:  # it was caught, or the job was started again
        file.write("".join(f"step {i}/500 loss {2 / (i + 1) + 0.1:.4f} lr 0.001\n" for i in range(100, 150)))
    watcher.look(judge_now=True)
    assert one(watcher).state == "running"


def test_judging_is_bounded_by_its_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live, clock = Live(tmp_path, total=10_000), Clock()
    calls: list[int] = []
    real = module.judge

    def slow(run: Any, **given: Any) -> Any:
        calls.append(1)
        time.sleep(0.02)
        return real(run, **given)

    monkeypatch.setattr(module, "judge", slow)
    watcher = Watcher([live.folder], clock=clock)
    for _ in range(40):
        live.grow(1)
        clock.now += 0.05  # far faster than a diagnosis is worth
        watcher.look()
    assert 1 <= len(calls) <= 8
    watcher.look()
    before = len(calls)
    clock.now += 1e6
    for _ in range(5):
        watcher.look()
    assert len(calls) - before <= 1  # nothing new, nothing judged


def test_code_beside_the_run_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = Live(tmp_path)
    calls: list[int] = []
    monkeypatch.setattr(module, "audited", lambda _run: calls.append(1) or ())
    watcher = Watcher([live.folder])
    for _ in range(4):
        live.grow(10)
        watcher.look(judge_now=True)
    assert len(calls) == 1


def test_several_runs_at_once(tmp_path: Path) -> None:
    good, bad = Live(tmp_path, "good"), Live(tmp_path, "bad", seed=1)
    good.grow(40)
    bad.grow(40)
    bad.grow(5, broken=True)
    watcher = Watcher([tmp_path])
    new = watcher.look()
    assert {i.run for i in new if i.kind == "alarm"} == {"bad"}
    assert {w.run.name: w.diagnosis.verdict for w in watcher.runs.values() if w.diagnosis} == {"good": "sound", "bad": "ill"}


def test_runs_of_one_name_are_told_apart_and_settings_are_no_run(tmp_path: Path) -> None:
    for seed in ("a", "b"):
        Live(tmp_path / seed, "exp").grow(20)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "config.yaml").write_text("lr: 0.1\nepochs: 3\n")
    watcher = Watcher([tmp_path])
    watcher.look()
    assert sorted(w.name for w in watcher.runs.values()) == ["a/exp", "b/exp"]


def test_time_left_and_the_chance_of_a_target(tmp_path: Path) -> None:
    live = Live(tmp_path, total=200)
    live.grow(120)
    clock = Clock()
    os.utime(live.log, (clock.now, clock.now))
    watcher = Watcher([live.folder], target=goal_of("val/accuracy=95"), clock=clock)
    watcher.look()
    run = one(watcher)
    assert run.seconds_left() == pytest.approx(81 * 60)  # a row a minute, 119 of 200
    assert isinstance(run.outlook, Forecast)
    hard, words = run.chance(Goal("val/accuracy", 95.0))
    easy, _ = run.chance(Goal("val/accuracy", 50.0))
    assert hard is not None
    assert hard < 0.05
    assert "by epoch" in words
    assert easy == 1.0
    assert watcher.target == Goal("val/accuracy", 95.0)


def test_a_target_that_is_reached_is_said_once(tmp_path: Path) -> None:
    live = Live(tmp_path)
    watcher = Watcher([live.folder], target=goal_of("val/accuracy=80"))
    kinds = []
    for _ in range(10):
        live.grow(10)
        kinds += [i.kind for i in watcher.look(judge_now=True)]
    assert kinds == ["target"]


def test_a_judgement_that_breaks_does_not_end_the_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = Live(tmp_path)
    live.grow(20)

    def broken(_run: Any, **_given: Any) -> Any:
        raise ZeroDivisionError("a sign of ours")

    monkeypatch.setattr(module, "judge", broken)
    watcher = Watcher([live.folder])
    assert watcher.look() == []
    assert "ZeroDivisionError" in one(watcher).problem
    monkeypatch.undo()
    live.grow(1)
    watcher.look(judge_now=True)
    assert one(watcher).problem == ""
    assert one(watcher).diagnosis is not None
