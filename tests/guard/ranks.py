"""Run as a program, one process for each rank: every framework that is here, under DDP, by every policy; and a model in
shards. test_ranks.py reads what each rank tells."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from frameworks import ARMS, Setup, differ, present, raw, train
from torch.distributed import fsdp
from torch.distributed.device_mesh import init_device_mesh

from wheeltapper.guard import Guard, steps
from wheeltapper.guard.judge import Alarm
from wheeltapper.guard.ranks import find
from wheeltapper.guard.sample import local

# Steps 8 and 16 are meetings (the first is 0); the nan is in between.
POISON, STEPS = 10, 25


def main(folder: Path, device: str, backend: str) -> None:
    torch.set_num_threads(1)
    logging.getLogger("wheeltapper.guard").setLevel(logging.CRITICAL)
    dist.init_process_group(backend)
    if dist.get_world_size() == 4:  # by hand: two copies of two shards
        (folder / f"told-{os.environ['RANK']}.json").write_text(json.dumps({"hsdp": shards("hsdp", folder / "hsdp")}))
        dist.destroy_process_group()
        return
    told: dict[str, Any] = {how: arm(how, folder / how, device) for how in ARMS if present(how) and how != "context"}
    if dist.get_world_size() > 1:
        told["moods"] = moods(device)
        told["drift"] = drift(device)
        told["absent"] = absent(folder / "absent", device)
        if device == "cpu":  # gloo shards nothing on a GPU, and NCCL takes no two ranks on one
            told |= {kind: shards(kind, folder / kind) for kind in ("fsdp2", "fsdp1", "fsdp1-named")}
    (folder / f"told-{os.environ['RANK']}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


def arm(how: str, folder: Path, device: str) -> dict[str, Any]:
    plain = train(Setup(how, device, steps=12), None, folder / "plain")
    watched = train(Setup(how, device, steps=12), {"every": 4}, folder / "watch")
    told: dict[str, Any] = {"differ": differ(plain, watched), "watch": facts(watched)}
    last = dist.get_world_size() - 1
    for policy in ("skip", "rollback", "stop"):
        setup = Setup(how, device, steps=STEPS, poison=POISON, poison_rank=last)
        if policy == "stop" and how in ("guard", "accelerate"):
            continue  # these raise Stop, which test_policies has
        told[policy] = facts(train(setup, {"policy": policy, "every": 4, "snapshot_every": 8}, folder / policy))
    return told


def facts(trained: Any) -> dict[str, Any]:
    guard = trained.guard
    weights = {k: v for k, v in trained.tensors.items() if k.startswith(("weight", "moment"))}
    return {
        "kinds": [i.kind for i in guard.incidents if i.kind != "nonfinite-loss"],  # only one rank's loss is
        "actions": [[i.action, i.step, i.facts.get("to_step")] for i in guard.incidents if i.action],
        "passive": guard.passive,
        "agree": guard.ranks_agree,
        "world": guard._ranks.world if guard._ranks.group is not None else 1,
        "at": guard.at,
        "weights": hashlib.sha256(b"".join(raw(v) for v in weights.values())).hexdigest(),
        "finite": all(bool(torch.isfinite(v).all()) for v in weights.values()),
        "steps": len(guard.history),
        "rate": float(trained.tensors["rate"][0]),
    }


def moods(device: str) -> dict[str, Any]:
    """One rank is uneasy when it is time for a snapshot, and sees trouble where the other does not, or later."""
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    guard = Guard(model, optimizer, policy="rollback", every=4, snapshot_every=8)
    guard._actor.used = rank  # as if one rank's journal had been lost
    calm, mood = guard._judge.calm, {"calm": True}
    guard._judge.calm = lambda: mood["calm"] and calm()  # type: ignore[method-assign]
    for k in range(72):
        mood["calm"] = not (rank == 1 and 14 < k < 20)
        if k in (50, 60) and (rank == 1 or k == 60):
            guard._actor.consider(Alarm("loss-left-band", "planted", "error", guard.at), guard.tick - 20 * rank)
        loss = model(torch.randn(8, 4, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        guard.step(loss)
        optimizer.step()
    guard.close()
    compiled = torch.nn.Module()
    compiled._orig_mod = model  # as torch.compile wraps it
    return {
        "world": find(compiled).world if find(compiled).group is not None else 1,
        "snapshots": [[s.step, s.tick] for s in guard._actor.snapshots],
        "actions": [[i.action, i.step, i.facts.get("to_step")] for i in guard.incidents if i.action],
        "weights": [float(p.detach().sum()) for p in model.parameters()],
        "used": guard._actor.used,
        "passive": guard.passive,
    }


def drift(device: str) -> dict[str, Any]:
    """Weights that drift apart on one rank; then the guard of the other is gone."""
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    guard = Guard(model, optimizer, every=4)
    for k in range(14):
        loss = model(torch.randn(8, 4, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        guard.step(loss)
        optimizer.step()
        if k == 5 and rank == 1:
            with torch.no_grad():
                model.module.bias[0] += 1e-3
        if k == 10 and rank == 0:
            guard.passive = "made so by the test"  # the others must not wait for it
    guard.close()
    return {"kinds": [i.kind for i in guard.incidents], "agree": guard.ranks_agree, "passive": guard.passive}


# Shards


def sharded(kind: str) -> tuple[Any, Any]:
    torch.manual_seed(10)
    nn = torch.nn
    # The last layer's bias has fewer numbers than there are ranks.
    model: Any = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 1))
    if kind == "fsdp2":
        model = fsdp.fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    elif kind == "hsdp":
        model = fsdp.fully_shard(model, mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "shards")))
    else:
        named = kind == "fsdp1-named"
        model = fsdp.FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=named)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def state(model: Any, optimizer: Any) -> list[Any]:
    moments = [v for p in model.parameters() for v in optimizer.state[p].values()]
    return [local(t.detach()).clone() for t in (*model.parameters(), *model.buffers(), *moments)]


def same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def shards(kind: str, folder: Path) -> dict[str, Any]:
    told = {}
    kept = run_shards(kind, None, folder)[1]
    for policy in ("watch", "skip", "rollback"):
        facts, mine = run_shards(kind, policy, folder / policy)
        told[policy] = facts | {"same": policy != "watch" or same(kept[STEPS], mine[STEPS])}
    # A fresh process takes the newest state that all ranks have.
    model, optimizer = sharded(kind)
    fresh = Guard(model, optimizer, policy="rollback", run_dir=folder / "rollback")
    step = fresh.resume()
    fresh.detach()
    told["rollback"] |= {"resumed": step, "as then": step in mine and same(state(model, optimizer), mine[step])}
    return told


def run_shards(kind: str, policy: str | None, folder: Path) -> tuple[dict[str, Any], dict[int, list[Any]]]:
    """What the guard saw, and this rank's state after every step of the run, as it was when it was made first."""
    model, optimizer = sharded(kind)
    guard = Guard(model, optimizer, policy=policy, every=1, snapshot_every=8, run_dir=folder) if policy else None
    norms, kept, restored = [], {}, None
    for k in range(STEPS):
        x = torch.randn(16, 6)
        if k == STEPS - 4 and policy in ("skip", "rollback") and dist.get_rank() == 1:
            x = x * float("nan")
        loss = (model(x) - x[:, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        grads = [local(p.grad) for p in model.parameters() if p.grad is not None]
        square = torch.stack([g.double().square().sum() for g in grads]).sum()
        dist.all_reduce(square)
        square /= 2 if kind == "hsdp" else 1
        if guard is not None:
            guard.step(loss)
        optimizer.step()
        if guard is not None:
            guard.flush()
            norms.append([float(square) ** 0.5, guard.global_norm, guard.history[-1].grad_norm])
            if guard.at <= k and policy == "rollback" and restored is None:
                restored = same(state(model, optimizer), kept[guard.at])
        kept[k + 1] = state(model, optimizer)
    if guard is None:
        return {}, kept
    guard.close()
    finite = all(bool(torch.isfinite(t).all()) for t in state(model, optimizer))
    actions = [[i.action, i.facts.get("to_step")] for i in guard.incidents if i.action]
    kinds = [i.kind for i in guard.incidents]
    facts = {"norms": norms, "passive": guard.passive, "kinds": kinds, "finite": finite, "actions": actions}
    return facts | {"restored": restored}, kept


def absent(folder: Path, device: str) -> dict[str, Any]:
    """The guard of rank 0 fails; the others neither wait for it nor skip without it."""
    out = {}
    for policy in ("skip", "rollback"):
        setup = Setup("guard", device, steps=STEPS, poison=POISON, poison_rank=1)
        step = steps.before

        def failing(guard: Guard) -> None:
            if dist.get_rank() == 0 and guard.at == 5:
                raise RuntimeError("planted")
            step(guard)  # noqa: B023

        steps.before = failing
        try:
            out[policy] = facts(train(setup, {"policy": policy, "every": 4}, folder / policy))
        finally:
            steps.before = step
    return out


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
