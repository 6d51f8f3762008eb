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


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]], {})
    os._exit(0)
os.wait()
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("how", ["ends", "is cancelled", "is out of time"])
def test_a_daemon_of_an_arm_ends_with_it(engine: LocalEngine, tmp_path: Path, how: str) -> None:
    """It left its group and its session and cleared its environment; it ends with its arm, not with the trial."""
    mark = f"daemon-of-{os.getpid()}-{how.replace(' ', '-')}"
    (tmp_path / "daemon.py").write_text(DAEMON)
    stay = "0.2" if how == "ends" else "600"
    more = {"timeout": 1.0} if how == "is out of time" else {}
    engine.submit(job(tmp_path, "a", f"{sys.executable} daemon.py {mark} {stay}", **more))
    if how == "is cancelled":
        until = time.monotonic() + 20
        while not [pid for pid in alive(mark) if b"time.sleep(600)" in Path(f"/proc/{pid}/cmdline").read_bytes()] and time.monotonic() < until:
            time.sleep(0.02)
        engine.cancel("a")
    assert sum(e.kind == "ended" for e in events_until(engine, 1)) == 1
    assert [pid for pid in alive(mark) if pid != os.getpid()] == []


def test_what_an_arm_prints_is_capped(engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wheeltapper.trial.engines import local

    monkeypatch.setattr(local, "MOST_OUTPUT", 1 << 20)
    monkeypatch.setattr(local, "CUT_EVERY", 0.02)
    line = "x" * 1000
    engine.submit(job(tmp_path, "a", f"i=0; while [ $i -lt 30 ]; do head -c 400000 /dev/zero | tr '\\0' x; sleep 0.03; i=$((i+1)); done; echo {line[:20]} end"))
    assert events_until(engine, 1)[-1].code == 0
    printed = (tmp_path / "a" / STDOUT_FILE).read_bytes()
    assert len(printed) < 6 << 20  # of 12 MB
    assert b"a part is left out here" in printed
    assert printed.endswith(b"end\n")


def test_a_job_that_dies_of_a_signal_says_so(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(job(tmp_path, "a", "kill -9 $$"))
    engine.submit(job(tmp_path, "b", "sh -c 'kill -9 $$'"))
    codes = {e.id: e.code for e in events_until(engine, 2) if e.kind == "ended"}
    assert codes["b"] == 137
    assert codes["a"] in (-9, 137)
