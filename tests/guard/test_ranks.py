"""Two processes, gloo, CPU: one verdict, the same bits on both, restarts that remember."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("no gloo", allow_module_level=True)

HEAD = """
import json, os, sys
import torch, torch.distributed as dist
torch.set_num_threads(1)
from pathlib import Path
from wheeltapper.guard import Guard
folder = Path(sys.argv[1])
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
torch.manual_seed(0)
nn = torch.nn
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 1))
def batch():
    x = torch.randn(16, 6)
    return x, x[:, :1]
def tell(**facts):
    (folder / f"told-{rank}.json").write_text(json.dumps(facts))
def digest(m):
    return [float(p.detach().double().sum()) for p in m.parameters()]
"""

DDP = """
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
attempt = len(list(folder.glob("attempt*")))
dist.barrier()
(folder / f"attempt{attempt}").touch()
guard = Guard(model, optimizer, policy="rollback", run_dir=folder, every=5, snapshot_every=8, recoveries=2)
resumed, used = guard.resume(), guard._actor.used
torch.manual_seed(10 + rank)
for k in range(60):
    x, y = batch()
    if k == 35 and rank == 1:
        x = x * float("nan")  # only one rank sees it; the all-reduce hands it to both
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    guard.step(loss, batch_id=(rank, k))
    optimizer.step()
    if k == 50 and attempt == 0:
        guard._actor.finish()
        dist.barrier()
        os._exit(3)
guard.close()
tell(
    attempt=attempt, resumed=resumed, used=used, weights=digest(model), at=guard.at, passive=guard.passive,
    actions=[[i.action, i.facts.get("to_step")] for i in guard.incidents if i.action], agree=guard.ranks_agree,
    kinds=[i.kind for i in guard.incidents],
)
dist.destroy_process_group()
"""

DRIFT = """
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
guard = Guard(model, optimizer, every=4)
for k in range(14):
    x, y = batch()
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    guard.step(loss)
    optimizer.step()
    if k == 5 and rank == 1:
        with torch.no_grad():
            model.module[0].bias[0] += 1e-3
    if k == 10 and rank == 0:
        guard.passive = "made so by the test"  # the others must not wait for it
guard.close()
tell(kinds=[i.kind for i in guard.incidents], agree=guard.ranks_agree, passive=guard.passive)
dist.destroy_process_group()
"""

FSDP = """
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("cpu", (2,))
told = {}
for policy in ("watch", "skip", "rollback"):
    torch.manual_seed(10)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    guard = Guard(model, optimizer, policy=policy, every=1, snapshot_every=4)
    seen = []
    for k in range(40):
        x, y = batch()
        if k == 30 and policy != "watch":
            x = x * float("nan")
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        full = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]).full_tensor()
        guard.step(loss)
        optimizer.step()
        guard.flush()
        seen.append([float(full), guard.global_norm, guard.history[-1].grad_norm])
    guard.close()
    told[policy] = {
        "norms": seen, "passive": guard.passive, "kinds": [i.kind for i in guard.incidents],
        "finite": all(bool(torch.isfinite(p.to_local()).all()) for p in model.parameters()),
        "actions": [i.action for i in guard.incidents if i.action],
    }
tell(**told)
dist.destroy_process_group()
"""


def launch(script: str, folder: Path, torchrun: bool = False, ends: int = 0) -> list[dict[str, Any]]:
    """Two processes; by torchrun only where that is the point, for its agent is a third that imports torch."""
    path = folder / "train.py"
    path.write_text(HEAD + script)
    shared = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, str(path), str(folder)]
    if torchrun:
        command[1:1] = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        environments = [shared]
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
        environments = [{**shared, "RANK": str(rank)} for rank in (0, 1)]
    running = [subprocess.Popen(command, env=e, stderr=subprocess.PIPE, text=True) for e in environments]
    errors = [process.communicate(timeout=240)[1] for process in running]
    assert [process.returncode for process in running] == [ends] * len(running), errors[0][-3000:]
    return [] if ends else [json.loads((folder / f"told-{rank}.json").read_text()) for rank in (0, 1)]


def test_ddp_goes_back_together_and_a_restart_remembers(tmp_path: Path) -> None:
    launch(DDP, tmp_path, ends=3)
    zero, one = launch(DDP, tmp_path, torchrun=True)
    assert zero["attempt"] == 1
    assert zero["resumed"] == one["resumed"] is not None
    assert zero["used"] == one["used"] == 1  # the first process's rollback counts
    assert zero["passive"] is one["passive"] is None
    assert [a for a, _ in zero["actions"]] == ["rollback"]
    assert zero["actions"] == one["actions"]
    assert zero["weights"] == one["weights"]
    assert all(w == w for w in zero["weights"])
    assert zero["at"] == one["at"]
    assert zero["agree"] is True
    assert "ranks-differ" not in zero["kinds"]


def test_ranks_that_differ_and_a_guard_that_has_gone(tmp_path: Path) -> None:
    """Weights that drift apart are told on both ranks; a passive guard still comes to the meetings."""
    zero, one = launch(DRIFT, tmp_path)
    assert zero["kinds"] == one["kinds"] == ["ranks-differ"]
    assert zero["passive"] == "made so by the test"
    assert one["passive"] is None


def test_sharded(tmp_path: Path) -> None:
    """FSDP2's fully_shard on the CPU: norms of the shards add up to the whole; all ranks skip and go back together."""
    ranks = launch(FSDP, tmp_path)
    for policy in ("watch", "skip", "rollback"):
        zero, one = (told[policy] for told in ranks)
        assert zero["passive"] is one["passive"] is None
        for full, whole, _ in zero["norms"][:29]:
            assert whole == pytest.approx(full, rel=1e-4)
        assert zero["norms"][0][2] != one["norms"][0][2]  # each rank has its own shards
        assert zero["finite"]
        assert one["finite"]
        assert zero["actions"] == one["actions"] == ([] if policy == "watch" else [policy])
