"""What the plain guard survives (test_disk.py, test_ranks.py), once through a Hugging Face Trainer."""

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
pytest.importorskip("transformers")

from frameworks import Net, Setup, made, train  # noqa: E402

from wheeltapper.guard import Guard  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework's own
HERE = Path(__file__).resolve().parent
ROLLBACK = {"policy": "rollback", "snapshot_every": 16}


@pytest.mark.parametrize("how", ["read-only", "full"])
def test_a_folder_that_cannot_be_written(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = tmp_path / "guard"
    if how == "read-only":
        folder.write_text("a file where the folder should be")  # root may write anywhere, so not by mode bits
    else:
        monkeypatch.setattr(os, "fsync", full)
        monkeypatch.setattr(torch, "save", full)
    setup = Setup("trainer", steps=60, poison=45)
    guard = train(setup, {**ROLLBACK, "run_dir": folder}, tmp_path / "trainer").guard
    monkeypatch.undo()
    assert guard is not None
    assert guard.passive is None
    assert [i.action for i in guard.incidents if i.action] == ["rollback"]  # memory is enough to go back
    assert all(bool(torch.isfinite(p).all()) for p in guard.model.parameters())
    assert sum("the guard keeps to memory" in r.message for r in caplog.records) == 1


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from frameworks import Setup, train
save, saves = torch.save, []
def dying(state, file, *args, **kwargs):
    save(state, file, *args, **kwargs)
    if isinstance(state, dict) and "optimizer" in state:
        saves.append(state["step"])
        if len(saves) == 3:
            file.flush()
            file.truncate(file.tell() // 2)
            os.kill(os.getpid(), signal.SIGKILL)
torch.save = dying
train(Setup("trainer", steps=400), {"policy": "rollback", "snapshot_every": 16}, Path(sys.argv[1]))
"""


def program(folder: Path, text: str) -> list[str]:
    (folder / "program.py").write_text(f"import sys\nsys.path.insert(0, {str(HERE)!r})\n{text}")
    return [str(folder / "program.py"), str(folder)]


def test_kill_9_while_the_trainer_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, *program(tmp_path, KILLED)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(list(tmp_path.glob(".*.part"))) == 1  # the half-written one, under no good name
    lines = [json.loads(line) for line in (tmp_path / "guard.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines if line["event"] == "checkpoint"]
    assert len(steps) == 2
    net = Net(Setup())
    again = Guard(net, made(Setup(), net.parameters()), policy="rollback", run_dir=tmp_path)
    assert again.resume() == steps[-1]
    assert all(bool(torch.isfinite(p).all()) for p in net.parameters())


RESTARTED = """
import functools, hashlib, json, os
from pathlib import Path
import torch
torch.set_num_threads(1)
from frameworks import Net, Setup, by_trainer, raw, seed
folder, rank = Path(sys.argv[1]), int(os.environ["RANK"])
again = int((folder / "checkpoint-32").exists())
forward = Net.forward
@functools.wraps(forward)
def dying(net, *args, **kwargs):
    if not again and rank == 1 and net.passes == 36:
        os._exit(3)
    return forward(net, *args, **kwargs)
Net.forward = dying
setup = Setup("trainer", steps=48, poison=-1 if again else 12, poison_rank=1)
seed()
trained = by_trainer(
    setup, {"policy": "rollback", "snapshot_every": 8, "recoveries": 2, "run_dir": folder / "guard"}, folder,
    save_strategy="steps", save_steps=16, resume_from_checkpoint=str(folder / "checkpoint-32") if again else None,
)
guard = trained.guard
weights = b"".join(raw(v) for k, v in trained.tensors.items() if k.startswith("weight"))
told = {"again": again, "used": guard._actor.used, "passive": guard.passive, "agree": guard.ranks_agree,
        "steps": [guard.history[0].step, guard.history[-1].step], "world": guard._ranks.world,
        "weights": hashlib.sha256(weights).hexdigest(), "finite": all(torch.isfinite(v).all().item() for k, v in
        trained.tensors.items() if k.startswith("weight"))}
(folder / f"told-{rank}.json").write_text(json.dumps(told))
"""


def test_torchrun_starts_a_trainer_again(tmp_path: Path) -> None:
    """Two launches: within one (--max-restarts) gloo may dial the processes that died, with or without a guard."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [sys.executable, *launcher, *program(tmp_path, RESTARTED)]
    shared = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    for ends in (1, 0):
        done = subprocess.run(command, env=shared, capture_output=True, text=True, check=False, timeout=200)
        assert done.returncode == ends, done.stderr[-3000:]
    zero, one = (json.loads((tmp_path / f"told-{rank}.json").read_text()) for rank in (0, 1))
    assert zero == one
    assert zero["again"] == 1
    assert zero["used"] == 1  # the recovery of the process that died
    assert zero["steps"] == [32, 47]
    assert zero["world"] == 2
    assert zero["agree"] is True
    assert zero["finite"]
    assert zero["passive"] is None
