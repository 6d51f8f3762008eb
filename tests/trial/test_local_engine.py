"""The local engine: limits kept, nothing left behind, whatever the jobs do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wheeltapper.errors import InputError
from wheeltapper.trial.engines import STDOUT_FILE, Event, Job, exit_code_left, open_engine
from wheeltapper.trial.engines.local import LocalEngine, memory_by_session

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    made = LocalEngine(cpus=2, gpus=())
    yield made
    made.close()


def job(folder: Path, name: str, command: str, **more: object) -> Job:
    (folder / name).mkdir()
    return Job(name, command, cwd=str(folder), out=str(folder / name), **more)  # type: ignore[arg-type]


def events_until(engine: LocalEngine, ended: int, patience: float = 30.0) -> list[Event]:
    out: list[Event] = []
    until = time.monotonic() + patience
    while sum(e.kind == "ended" for e in out) < ended and time.monotonic() < until:
        out += engine.poll(0.5)
    return out


def alive(mark: str) -> list[int]:
    """Processes that carry the mark in their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (
                    mark.encode() in (entry / "cmdline").read_bytes()
                    and "Z" not in (entry / "stat").read_text().rpartition(")")[2][:3]
                ):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_a_hundred_tiny_arms_leave_nothing(engine: LocalEngine, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    sessions = set(memory_by_session())
    for i in range(100):
        engine.submit(job(tmp_path, f"j{i}", f"exit {i % 3}"))
    events = events_until(engine, 100)
    assert [e.kind for e in events].count("started") == 100
    codes = {e.id: e.code for e in events if e.kind == "ended"}
    assert codes == {f"j{i}": i % 3 for i in range(100)}
    assert all(exit_code_left(tmp_path / f"j{i}") == i % 3 for i in range(100))
    assert sorted(os.listdir(tmp_path / "j0")) == ["exit_code", STDOUT_FILE]
    engine.close()
    assert len(os.listdir("/proc/self/fd")) <= before
    assert not [p for p in set(memory_by_session()) - sessions if p in alive(str(tmp_path))]


def test_no_more_run_at_once_than_there_are_processors(engine: LocalEngine, tmp_path: Path) -> None:
    for i in range(5):
        engine.submit(job(tmp_path, f"j{i}", "sleep 0.05"))
    running = most = 0
    for event in sorted(events_until(engine, 5), key=lambda e: (e.at, e.kind == "started")):
        running += 1 if event.kind == "started" else -1
        most = max(most, running)
    assert most == 2


def test_what_a_job_prints_is_kept(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(job(tmp_path, "j", "echo out; echo err >&2; echo $GREETING", env={"GREETING": "hello"}))
    events_until(engine, 1)
    assert (tmp_path / "j" / STDOUT_FILE).read_text() == "out\nerr\nhello\n"


def test_a_job_over_its_time_dies_with_all_it_started(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(job(tmp_path, "j", "sleep 98.7 & setsid sleep 98.7 & sleep 98.7", timeout=0.2))
    ended = events_until(engine, 1)[-1]
    assert (ended.kind, ended.why) == ("ended", "timeout")
    engine.close()
    assert alive("98.7") == []


def test_a_job_that_ignores_the_request_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheeltapper.trial.engines.local.GRACE", 0.2)
    engine = LocalEngine(cpus=1, gpus=())
    engine.submit(job(tmp_path, "j", "trap '' TERM; while true; do sleep 0.05; done"))
    while not engine.poll(1.0):
        pass
    time.sleep(0.1)
    engine.cancel("j")
    ended = events_until(engine, 1)[-1]
    assert (ended.why, ended.code) == ("cancelled", -signal.SIGKILL)
    engine.close()


def test_a_job_over_its_memory_is_killed(engine: LocalEngine, tmp_path: Path) -> None:
    code = "x = bytearray(200 << 20); x[::4096] = b'1' * len(x[::4096]); import time; time.sleep(60)"
    engine.submit(job(tmp_path, "j", f'{sys.executable} -I -S -c "{code}"', memory=60 << 20))
    ended = events_until(engine, 1)[-1]
    assert ended.why == "memory"


def test_a_waiting_job_can_be_cancelled(engine: LocalEngine, tmp_path: Path) -> None:
    for i in range(3):
        engine.submit(job(tmp_path, f"j{i}", "sleep 0.2"))
    engine.cancel("j2")
    events = events_until(engine, 3)
    assert [e.why for e in events if e.id == "j2"] == ["cancelled"]
    assert not (tmp_path / "j2" / STDOUT_FILE).exists()


def test_gpus_are_lent_one_by_one(tmp_path: Path) -> None:
    engine = LocalEngine(cpus=8, gpus=("0", "1"))
    for i in range(4):
        engine.submit(job(tmp_path, f"j{i}", "echo $CUDA_VISIBLE_DEVICES; sleep 0.05", gpus=1.0))
    engine.submit(job(tmp_path, "two", "echo $CUDA_VISIBLE_DEVICES", gpus=2.0))
    events_until(engine, 5)
    engine.close()
    lent = [(tmp_path / f"j{i}" / STDOUT_FILE).read_text().strip() for i in range(4)]
    assert sorted(lent[:2]) == ["0", "1"]
    assert set(lent) == {"0", "1"}
    assert (tmp_path / "two" / STDOUT_FILE).read_text().strip() in ("0,1", "1,0")


def test_a_job_larger_than_the_machine_is_refused(engine: LocalEngine, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="GPUs"):
        engine.submit(job(tmp_path, "j", "true", gpus=1.0))


def test_a_folder_that_is_not_there_is_a_failed_start(engine: LocalEngine, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    engine.submit(Job("j", "true", cwd=str(tmp_path / "nowhere"), out=str(tmp_path / "o")))
    ended = events_until(engine, 1)[-1]
    assert ended.why == "failed to start"
    assert "No such file" in ended.where
    engine.submit(job(tmp_path, "k", "true"))
    assert events_until(engine, 1)[-1].code == 0


def test_jobs_die_when_their_driver_is_killed(tmp_path: Path) -> None:
    script = f"""
import time
from wheeltapper.trial.engines import Job
from wheeltapper.trial.engines.local import LocalEngine
engine = LocalEngine(cpus=2, gpus=())
engine.submit(Job("j", "sleep 97.6", cwd="{tmp_path}", out="{tmp_path}"))
print(engine.poll(10)[0].kind, flush=True)
time.sleep(60)
"""
    driver = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    assert driver.stdout.readline() == "started\n"
    assert alive("97.6")
    driver.kill()
    driver.wait()
    driver.stdout.close()
    until = time.monotonic() + 10
    while alive("97.6") and time.monotonic() < until:
        time.sleep(0.05)
    assert alive("97.6") == []


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(InputError, match="no engine 'cloud'"):
        open_engine("cloud")
