"""The engines ray and slurm keep the contract of engines/__init__.py, with workers killed under them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wheeltapper.errors import InputError
from wheeltapper.trial.engines import Engine, Event, Job, open_engine
from wheeltapper.trial.engines._node import moved, packed, run_here, unpacked


def job(folder: Path, name: str, command: str, timeout: float | None = None) -> Job:
    out = folder / name
    out.mkdir()
    return Job(name, command, cwd=str(out), out=str(out), timeout=timeout)


def until_over(engine: Engine, ids: set[str], seconds: float = 60.0) -> dict[str, list[Event]]:
    """Events by job, until each has ended or was lost."""
    found: dict[str, list[Event]] = {name: [] for name in ids}
    end = time.monotonic() + seconds
    while any(not seen or seen[-1].kind == "started" for seen in found.values()):
        assert time.monotonic() < end, found
        for event in engine.poll(0.5):
            found[event.id].append(event)
    return found


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


def still_running(folder: Path) -> list[str]:
    """Processes that were started in a job's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if Path(os.readlink(entry / "cwd")).is_relative_to(folder):
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    return found


def test_a_job_runs_to_its_end_on_a_node(tmp_path: Path) -> None:
    events = [event for event in run_here(job(tmp_path, "a", "echo hi; exit 4")) if event is not None]
    assert [(event.kind, event.code) for event in events] == [("started", None), ("ended", 4)]
    assert (tmp_path / "a" / "stdout.log").read_text() == "hi\n"
    assert (tmp_path / "a" / "exit_code").read_text() == "4\n"


def test_leaving_early_ends_what_was_started(tmp_path: Path) -> None:
    running = run_here(job(tmp_path, "a", "sleep 60"))
    assert next(running) is not None
    running.close()  # type: ignore[attr-defined]
    assert still_running(tmp_path) == []


def test_files_travel_and_nothing_leaves_the_folder(tmp_path: Path) -> None:
    (tmp_path / "one" / "deep").mkdir(parents=True)
    (tmp_path / "one" / "deep" / "a.txt").write_text("a")
    (tmp_path / "one" / "link").symlink_to("/etc/hostname")
    unpacked(packed(tmp_path / "one"), tmp_path / "two")
    assert [path.name for path in sorted((tmp_path / "two").rglob("*"))] == ["deep", "a.txt"]
    old = tmp_path / "one" / "deep" / "a.txt"
    os.utime(old, (1, 1))
    (tmp_path / "one" / "b.txt").write_text("b")
    unpacked(packed(tmp_path / "one", since=100.0), tmp_path / "three")
    assert [path.name for path in (tmp_path / "three").rglob("*")] == ["b.txt"]


def test_a_moved_job_names_only_its_new_folder(tmp_path: Path) -> None:
    old = Job(
        "a",
        f"train -o {tmp_path}/a/out",
        cwd=f"{tmp_path}/a/work",
        out=f"{tmp_path}/a",
        env={"OUT": f"{tmp_path}/a/out"},
    )
    new = moved(old, "/elsewhere/a")
    assert (new.command, new.cwd, new.env["OUT"]) == (
        "train -o /elsewhere/a/out",
        "/elsewhere/a/work",
        "/elsewhere/a/out",
    )


class TestSlurm:
    @pytest.fixture
    def engine(self, tmp_path: Path) -> Iterator[Engine]:
        pytest.importorskip("submitit")
        engine = open_engine("slurm", cluster="local", folder=str(tmp_path / "slurm"))
        yield engine
        engine.close()

    def test_ends_timeouts_cancels_and_a_killed_worker(self, engine: Engine, tmp_path: Path) -> None:
        engine.submit(job(tmp_path, "fails", "echo hi; exit 3"))
        engine.submit(job(tmp_path, "long", "sleep 60", timeout=0.5))
        engine.submit(job(tmp_path, "killed", "sleep 60"))
        engine.submit(job(tmp_path, "unwanted", "sleep 60"))
        found: dict[str, list[Event]] = {name: [] for name in ("fails", "long", "killed", "unwanted")}
        end = time.monotonic() + 60
        while any(not seen or seen[-1].kind == "started" for seen in found.values()):
            assert time.monotonic() < end, found
            for event in engine.poll(0.5):
                found[event.id].append(event)
                if event.kind == "started" and event.id == "killed":
                    os.kill(int(event.where.rsplit(":", 1)[1]), signal.SIGKILL)
                if event.kind == "started" and event.id == "unwanted":
                    engine.cancel("unwanted")
        assert {name: kinds(seen) for name, seen in found.items()} == {
            "fails": ["started", "ended"],
            "long": ["started", "ended"],
            "killed": ["started", "lost"],
            "unwanted": ["started", "ended"],
        }
        assert (found["fails"][-1].code, found["long"][-1].why, found["unwanted"][-1].why) == (
            3,
            "timeout",
            "cancelled",
        )
        assert (tmp_path / "fails" / "stdout.log").read_text() == "hi\n"
        time.sleep(1.5)  # the reaper gives a second
        assert still_running(tmp_path) == []

    def test_debug_runs_inside_this_process(self, tmp_path: Path) -> None:
        pytest.importorskip("submitit")
        engine = open_engine("slurm", cluster="debug", folder=str(tmp_path / "slurm"))
        engine.submit(job(tmp_path, "a", "exit 2"))
        engine.submit(job(tmp_path, "b", "exit 0"))
        engine.cancel("b")
        found = until_over(engine, {"a", "b"})
        assert [(e.code, e.why) for e in (found["a"][-1], found["b"][-1])] == [(2, ""), (None, "cancelled")]
        engine.close()
        engine.close()

    def test_wrong_options_are_told(self) -> None:
        with pytest.raises(InputError, match="none of slurm, local, debug"):
            open_engine("slurm", cluster="pbs")
        with pytest.raises(InputError, match="whole numbers"):
            open_engine("slurm", jobs="many")


@pytest.mark.slow
def test_ray_with_a_killed_worker_and_files_through_the_object_store(tmp_path: Path) -> None:
    """One local Ray of two processors for all of it: starting it is what takes the time."""
    pytest.importorskip("ray")
    engine = open_engine("ray", cpus="2", artefacts="store")
    try:
        assert engine.room() == 2
        inside = job(tmp_path, "fails", f"cat {tmp_path}/fails/input; pwd; exit 3")
        (tmp_path / "fails" / "input").write_text("sent along\n")
        engine.submit(inside)
        engine.submit(job(tmp_path, "killed", "sleep 60"))
        found: dict[str, list[Event]] = {"fails": [], "killed": [], "unwanted": []}
        end = time.monotonic() + 90
        engine.submit(job(tmp_path, "unwanted", "sleep 60"))
        while any(not seen or seen[-1].kind == "started" for seen in found.values()):
            assert time.monotonic() < end, found
            for event in engine.poll(0.5):
                found[event.id].append(event)
                if event.kind == "started" and event.id == "killed":
                    os.kill(int(event.where.rsplit(":", 1)[1]), signal.SIGKILL)
                if event.kind == "started" and event.id == "unwanted":
                    engine.cancel("unwanted")
        assert {name: kinds(seen) for name, seen in found.items()} == {
            "fails": ["started", "ended"],
            "killed": ["started", "lost"],
            "unwanted": ["started", "ended"],
        }
        assert (found["fails"][-1].code, found["unwanted"][-1].why) == (3, "cancelled")
        said = (tmp_path / "fails" / "stdout.log").read_text().splitlines()
        assert said[0] == "sent along"
        assert str(tmp_path) not in said[1]  # it ran elsewhere
        with pytest.raises(InputError, match="the cluster has 2"):
            engine.submit(Job("big", "true", cwd=str(tmp_path), out=str(tmp_path), cpus=64))
    finally:
        engine.close()
    engine.close()
    time.sleep(1.5)
    assert still_running(tmp_path) == []


def test_ray_options_are_checked() -> None:
    with pytest.raises(InputError, match="neither shared nor store"):
        open_engine("ray", artefacts="ftp")
