"""Run as a program, one process for each rank: every framework that is here, under DDP, by every policy."""

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

from wheeltapper.guard import Guard
from wheeltapper.guard.judge import Alarm

# Steps 8 and 16 are meetings (the first is 0); the nan is in between.
POISON, STEPS = 10, 24


def main(folder: Path, device: str, backend: str) -> None:
    torch.set_num_threads(1)
    logging.getLogger("wheeltapper.guard").setLevel(logging.CRITICAL)
    dist.init_process_group(backend)
    told: dict[str, Any] = {how: arm(how, folder / how, device) for how in ARMS if present(how) and how != "context"}
    if dist.get_world_size() > 1:
        told["moods"] = moods(device)
        told["absent"] = absent(folder / "absent", device)
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
    return {
        "snapshots": [[s.step, s.tick] for s in guard._actor.snapshots],
        "actions": [[i.action, i.step, i.facts.get("to_step")] for i in guard.incidents if i.action],
        "weights": [float(p.detach().sum()) for p in model.parameters()],
        "used": guard._actor.used,
        "passive": guard.passive,
    }


def absent(folder: Path, device: str) -> dict[str, Any]:
    """The guard of rank 0 fails; the others neither wait for it nor skip without it."""
    out = {}
    for policy in ("skip", "rollback"):
        setup = Setup("guard", device, steps=STEPS, poison=POISON, poison_rank=1)
        step = Guard._before

        def failing(guard: Guard) -> None:
            if dist.get_rank() == 0 and guard.at == 5:
                raise RuntimeError("planted")
            step(guard)  # noqa: B023

        Guard._before = failing  # type: ignore[method-assign]
        try:
            out[policy] = facts(train(setup, {"policy": policy, "every": 4}, folder / policy))
        finally:
            Guard._before = step  # type: ignore[method-assign]
    return out


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
