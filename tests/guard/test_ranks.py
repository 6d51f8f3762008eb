"""Two processes, gloo, CPU: one verdict, the same bits on both, restarts that remember."""

from __future__ import annotations

import json
import math
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

from frameworks import ARMS, present  # noqa: E402

HERE = Path(__file__).resolve().parent

DDP = """
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


def launch(
    program: Path, folder: Path, *arguments: str, world: int = 2, torchrun: bool = False, ends: int = 0
) -> list[dict[str, Any]]:
    """Two processes, as a rule; by torchrun only where that is the point, for its agent is a third that imports torch."""
    shared = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, str(program), str(folder), *arguments]
    if torchrun:
        command[1:1] = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        environments = [shared]
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(world), "LOCAL_RANK": "0"}
        environments = [{**shared, "RANK": str(rank)} for rank in range(world)]
    running = [subprocess.Popen(command, env=e, stderr=subprocess.PIPE, text=True) for e in environments]
    errors = [process.communicate(timeout=400)[1] for process in running]
    assert [process.returncode for process in running] == [ends] * len(running), errors[0][-3000:]
    return [] if ends else [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(world)]


@pytest.fixture(scope="module", params=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two ranks tell of everything that ranks.py does, in one launch. On a GPU they share it, through gloo."""
    return launch(HERE / "ranks.py", tmp_path_factory.mktemp("ranks"), request.param, "gloo")


@pytest.mark.parametrize("how", [how for how in ARMS if how != "context"])
def test_every_adapter_under_ddp(told: list[dict[str, Any]], how: str) -> None:
    """Watching changes no bit; a nan on one rank is met by both alike, and the run recovers."""
    if not present(how):
        pytest.skip("not installed")
    zero, one = (rank[how] for rank in told)
    assert zero["differ"] == one["differ"] == []
    acted = {"watch": [], "skip": [["skip", 10, None]], "rollback": [["rollback", 17, 1]], "stop": [["stop", 17, None]]}
    for policy in zero.keys() - {"differ"}:
        assert zero[policy] == one[policy], policy
        seen = zero[policy]
        assert seen["passive"] is None
        assert seen["world"] == 2
        assert seen["agree"] is True
        assert seen["actions"] == acted[policy]
        assert seen["finite"] is (policy != "stop")
    # The schedule went back too: it stands where the steps made say. accelerate moves it on once for every rank.
    at, whole = {"accelerate": (2, 50), "trainer": (1, 25), "callback": (1, 25)}.get(how, (1, 50))
    rate = 0.5e-2 * (1 + math.cos(math.pi * at * zero["rollback"]["at"] / whole))
    assert zero["rollback"]["rate"] == pytest.approx(rate, rel=1e-5)
    assert zero["watch"]["kinds"] == []
    assert zero["skip"]["kinds"] == ["nonfinite", "skipped"]
    assert zero["rollback"]["kinds"] == ["nonfinite", "weights", "rollback"]


def test_ranks_in_different_moods_keep_and_restore_the_same(told: list[dict[str, Any]]) -> None:
    zero, one = (rank["moods"] for rank in told)
    assert zero == one
    assert [action for action, _, _ in zero["actions"]] == ["rollback", "rollback"]
    assert zero["world"] == 2  # also found inside torch.compile
    assert zero["used"] == 3  # the rank that remembers a recovery speaks for both
    assert zero["passive"] is None


def test_no_rank_waits_for_a_guard_that_has_failed(told: list[dict[str, Any]]) -> None:
    """Nor does one act without it, which would leave them with different weights."""
    zero, one = (rank["absent"] for rank in told)
    for policy in ("skip", "rollback"):
        assert "planted" in zero[policy]["passive"]
        assert zero[policy]["actions"] == one[policy]["actions"] == []
        assert zero[policy]["weights"] == one[policy]["weights"]
    assert "rank-lost" in one["skip"]["kinds"]
    assert "another rank" in one["rollback"]["passive"]


def test_ddp_goes_back_together_and_a_restart_remembers(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(DDP)
    launch(program, tmp_path, ends=3)
    zero, one = launch(program, tmp_path, torchrun=True)
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


def test_ranks_that_differ_and_a_guard_that_has_gone(told: list[dict[str, Any]]) -> None:
    """Weights that drift apart are told on both ranks; a passive guard still comes to the meetings."""
    zero, one = (rank["drift"] for rank in told)
    assert zero["kinds"] == ["ranks-differ"]
    assert one["kinds"] == ["ranks-differ", "rank-lost"]
    assert zero["passive"] == "made so by the test"
    assert one["passive"] is None


@pytest.mark.parametrize("kind", ["fsdp2", "fsdp1", "fsdp1-named"])
def test_sharded(told: list[dict[str, Any]], kind: str) -> None:
    """On the CPU: norms of the shards add up to the whole; all ranks skip, go back and resume together, to the bit."""
    if kind not in told[0]:
        pytest.skip("gloo shards nothing on a GPU")
    for policy in ("watch", "skip", "rollback"):
        zero, one = (rank[kind][policy] for rank in told)
        assert zero["passive"] is one["passive"] is None
        for full, whole, _ in zero["norms"][:20]:
            assert whole == pytest.approx(full, rel=1e-4)
        assert zero["norms"][0][2] != one["norms"][0][2]  # each rank has its own shards
        assert zero["finite"]
        assert one["finite"]
        assert zero["same"]
        assert one["same"]
        assert [a for a, _ in zero["actions"]] == ([] if policy == "watch" else [policy])
        assert zero["actions"] == one["actions"]
        assert not {"no-gradient", "not-optimized", "ranks-differ"} & {*zero["kinds"], *one["kinds"]}
    assert zero["restored"] is one["restored"] is True
    assert zero["resumed"] == one["resumed"] is not None
    assert zero["as then"] is one["as then"] is True


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_one_rank_of_nccl(tmp_path: Path) -> None:
    (alone,) = launch(HERE / "ranks.py", tmp_path, "cuda", "nccl", world=1)
    for how, seen in alone.items():
        assert seen["differ"] == [], how
        assert [a for a, _, _ in seen["rollback"]["actions"]] == ["rollback"], how
        assert seen["rollback"]["finite"], how
        assert seen["skip"]["actions"] == [["skip", 10, None]], how
        assert all(seen[policy]["passive"] is None for policy in ("watch", "skip", "rollback")), how
