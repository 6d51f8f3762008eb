"""What is written is whole or not there; a disk that fails never reaches training."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from loop import Loop  # noqa: E402

from wheeltapper.guard import disk  # noqa: E402

HERE = Path(__file__).resolve().parent


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "guard.jsonl").read_text().splitlines()]


def test_checkpoints_are_verified_and_few(tmp_path: Path) -> None:
    loop = Loop()
    guard = loop.guard("rollback", tmp_path, snapshot_every=20)
    for _ in range(4):
        loop.run(30, guard)
        guard._actor.finish()  # the writer keeps up
    guard.close()
    kept = sorted(tmp_path.glob("good-*.pt"))
    assert len(kept) == disk.KEEP
    told = [line for line in lines(tmp_path) if line["event"] == "checkpoint"]
    assert told[-1]["file"] == kept[-1].name
    assert disk.sha256(kept[-1]) == told[-1]["sha256"]
    state = torch.load(kept[-1], weights_only=True)
    assert state["step"] == told[-1]["step"]
    assert state["scheduler"]["last_epoch"] == state["step"]  # the end of the iteration, not its middle
    assert not list(tmp_path.glob(".*.part"))


def test_a_state_that_is_not_finite_is_not_called_good(tmp_path: Path) -> None:
    state = {"step": 3, "model": {"w": torch.tensor([1.0, float("nan")])}, "optimizer": {}}
    with pytest.raises(ValueError, match="not finite"):
        disk.save(state, tmp_path, 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, damage: str) -> None:
    loop = Loop()
    guard = loop.guard("rollback", tmp_path, snapshot_every=20)
    for _ in range(4):
        loop.run(30, guard)
        guard._actor.finish()
    guard.close()
    older, newer = sorted(tmp_path.glob("good-*.pt"))
    if damage == "gone":
        newer.unlink()
    else:
        raw = bytearray(newer.read_bytes())
        raw[len(raw) // 2] ^= 0xFF
        newer.write_bytes(raw[: len(raw) // 2] if damage == "cut" else raw)
    again = Loop(seed=3).guard("watch", tmp_path)
    assert again.resume() == int(older.stem.removeprefix("good-"))


def test_resume_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    """A fresh process from the checkpoint, fed the batches that followed, ends with the bits of the first."""
    loop = Loop()
    guard = loop.guard("rollback", tmp_path, snapshot_every=1000)  # one, after step 1
    batches = []
    for k in range(40):
        if k == 1:
            batches.append(loop.data.get_state())
        loop.once(guard)
    guard.close()
    fresh = Loop(seed=8)
    again = fresh.guard("watch", tmp_path)
    assert again.resume() == 1
    fresh.data.set_state(batches[0])
    fresh.run(39, again)
    for a, b in zip(loop.model.state_dict().values(), fresh.model.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert loop.losses[1:] == fresh.losses
    assert loop.scheduler.get_last_lr() == fresh.scheduler.get_last_lr()
    for a, b in zip(loop.ema.state_dict().values(), fresh.ema.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_the_budget_outlives_the_process(tmp_path: Path) -> None:
    for k in range(3):
        loop = Loop()
        guard = loop.guard("rollback", tmp_path, snapshot_every=10, recoveries=2)
        assert guard._actor.used == min(k, 2)
        loop.run(40, guard, poison=(30,))
        guard.close()
    events = [line["event"] for line in lines(tmp_path)]
    assert events.count("recovery") == 2
    assert next(i.kind for i in guard.incidents) == "limit"
    assert not loop.finite()  # the third process had none left


def test_a_line_cut_short_by_a_crash_loses_only_itself(tmp_path: Path) -> None:
    (tmp_path / "guard.jsonl").write_text('{"event": "recovery", "number": 1}\n{"event": "recov')
    journal = disk.Journal(tmp_path)
    assert journal.used() == 1
    journal.write("recovery", number=2)
    assert disk.Journal(tmp_path).used() == 2


@pytest.mark.parametrize("where", ["open", "fsync", "save"])
def test_a_full_disk_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    loop = Loop()
    guard = loop.guard("rollback", tmp_path, snapshot_every=20)
    if where == "open":
        monkeypatch.setattr("builtins.open", full)
    elif where == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr(torch, "save", full)
    loop.run(80, guard, poison=(60,))
    guard.close()
    monkeypatch.undo()
    assert loop.finite()  # memory is enough to go back
    assert guard.passive is None
    assert [i.action for i in guard.incidents if i.action] == ["rollback"]
    assert sum("training goes on, the guard keeps to memory" in r.message for r in caplog.records) == 1
    assert not list(tmp_path.glob("good-*.pt"))


def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    target = tmp_path / "file"
    target.write_text("a file where the folder should be")  # root may write anywhere, so not by mode bits
    loop = Loop()
    guard = loop.guard("rollback", target / "run", snapshot_every=20)
    loop.run(60, guard, poison=(50,))
    guard.close()
    assert loop.finite()
    assert guard.passive is None
    assert sum("cannot write" in r.message for r in caplog.records) == 1


KILLED = """
import os, signal, sys
sys.path.insert(0, {here!r})
import torch
torch.set_num_threads(1)
from pathlib import Path
from loop import Loop
from wheeltapper.guard import disk

loop = Loop()
guard = loop.guard("rollback", Path({folder!r}), snapshot_every=20)
for _ in range(2):
    loop.run(40, guard)
    guard._actor.finish()
print("written", flush=True)
save = torch.save
def dying(state, file):
    save(state, file)
    file.flush()
    file.truncate(file.tell() // 2)
    print("half", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
torch.save = dying
loop.run(200, guard)
"""


def test_kill_9_during_a_snapshot_loses_nothing(tmp_path: Path) -> None:
    script = KILLED.format(here=str(HERE), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout.split() == ["written", "half"]
    parts = list(tmp_path.glob(".*.part"))
    assert len(parts) == 1  # the half-written one, under no good name
    told = [line for line in lines(tmp_path) if line["event"] == "checkpoint"]
    fresh = Loop(seed=4)
    guard = fresh.guard("rollback", tmp_path)
    assert guard.resume() == told[-1]["step"]
    fresh.run(5, guard)
    guard.close()
    assert fresh.finite()
    assert guard.passive is None
    assert not list(tmp_path.glob(".*.part")), "what the killed process left is gone at the next start"


def test_parts_of_living_processes_and_of_other_machines_stay(tmp_path: Path) -> None:
    mine = tmp_path / f".good-1.pt.{disk.HOST}-{os.getpid()}.part"
    other = tmp_path / ".good-1.pt.elsewhere-1.part"
    for part in (mine, other):
        part.write_bytes(b"half")
    disk.clear_parts(tmp_path)
    assert mine.exists()
    assert other.exists()
    os.utime(other, (0, 0))
    disk.clear_parts(tmp_path)
    assert not other.exists()


def test_a_disk_that_takes_writing_again_gets_what_was_to_be_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal, fsync = disk.Journal(tmp_path), os.fsync
    journal.write("one")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for name in ("two", "three"):
        journal.write(name)
        journal._again = 0.0  # as if a minute had passed
    assert journal.lost is not None
    assert [line["event"] for line in lines(tmp_path)] == ["one"]
    monkeypatch.setattr(os, "fsync", fsync)
    journal.write("four")
    assert journal.lost is None
    assert [line["event"] for line in lines(tmp_path)] == ["one", "two", "three", "four"]
    assert sum("keeps to memory" in r.message for r in caplog.records) == 1
    assert sum("takes writing again" in r.message for r in caplog.records) == 1


@pytest.mark.parametrize("error", [RuntimeError("PytorchStreamWriter failed writing file"), ValueError("x"), OSError(28, "full")])
def test_the_recorder_survives_whatever_writing_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    loop = Loop()
    guard = loop.guard("watch", tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", fails)
        loop.run(40, guard, poison=(20,))
    assert guard.passive is None
    assert not list(tmp_path.glob(".incident-*"))
    guard.close()
