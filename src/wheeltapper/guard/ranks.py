"""Several processes, one verdict. Collectives are used only where we know who takes part: the group of a DDP model,
the mesh of a sharded one, or a group the user names. They are called at fixed steps, by every rank, also by one
whose guard has gone passive, for a rank that stays away would make the others wait for ever.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import torch

from wheeltapper.errors import InputError

AGREE = 8  # steps between meetings under a policy that acts: the longest measured lead of a precursor (PRG-07)


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among the others. `group` None: alone, or not known to be otherwise."""

    rank: int = 0
    world: int = 1
    group: Any = None
    sharded: bool = False
    copies: int = 1  # of every shard, where a sharded model is also replicated (HSDP)
    buffers_own: bool = False  # DDP(broadcast_buffers=False): each rank keeps its own batch statistics

    def reduce(self, values: Any, how: str) -> Any:
        """All ranks' values put together, in place: "max", "min" or "sum"."""
        import torch.distributed as dist

        dist.all_reduce(values, getattr(dist.ReduceOp, how.upper()), group=self.group)
        return values

    def before_step(self, values: Any) -> Any:
        """The numbers that decide on a skip, of all ranks: of shards the sum, of equal copies the largest. The fourth
        (skips used so far) is a number of all ranks alike."""
        met = self.reduce(values.to(self.meeting_device(values.device)), "sum" if self.sharded else "max")
        if self.sharded:
            met[3] /= self.world
        return met.to(values.device)

    def meeting_device(self, device: torch.device) -> torch.device:
        """Where a small tensor must be for this group's backend."""
        import torch.distributed as dist

        return device if "nccl" in str(dist.get_backend(self.group)) else torch.device("cpu")


def find(model: Any, process_group: Any = None) -> Ranks:
    """Who we are, from the model's own wrapping; `process_group` False: alone, whatever else is there."""
    available = torch.distributed.is_available() and torch.distributed.is_initialized()
    if not available:
        return Ranks(rank=int(os.environ.get("RANK", "0") or 0))
    import torch.distributed as dist

    rank, world = dist.get_rank(), dist.get_world_size()
    alone = process_group is False or world < 2
    if alone or (process_group is not None and dist.get_world_size(process_group) < 2):
        return Ranks(rank)
    while hasattr(model, "_orig_mod"):  # compiled, around the wrapping
        model = model._orig_mod
    split = next((p for p in model.parameters() if hasattr(p, "device_mesh")), None)
    sharded = split is not None or old_sharding(model)
    group = process_group
    own = False
    if group is None and type(model).__name__ == "DistributedDataParallel" and split is None:
        joined = getattr(getattr(model, "_join_config", None), "enable", False)
        group, own = (None if joined else model.process_group), not model.broadcast_buffers
    elif group is None and split is not None:
        mesh = split.device_mesh
        group = dist.group.WORLD if mesh.size() == world else mesh.get_group() if mesh.ndim == 1 else None
    elif group is None and sharded:
        group = dist.group.WORLD
    return Ranks(rank, world, group, sharded, 1 if split is None else copies(split), own)


def copies(tensor: Any) -> int:
    """How many ranks hold the same shard of a DTensor."""
    sizes = [tensor.device_mesh.size(k) for k, place in enumerate(tensor.placements) if place.is_replicate()]
    return math.prod(sizes)


def check(policy: str, found: Ranks) -> None:
    """Refuse before training what would go wrong at the incident: ranks that act each for itself end up with different
    weights."""
    if policy != "watch" and found.world > 1 and found.group is None:
        raise InputError(
            f'policy="{policy}" among {found.world} ranks: the model does not tell which of them train together',
            do="Give the guard what DistributedDataParallel or fully_shard returned (not model.module), or name the "
            "group with process_group=; process_group=False if this rank trains alone.",
        )


def old_sharding(model: Any) -> bool:
    """Whether the model is sharded by FSDP1, whose state_dict is a gathered copy and not the state itself."""
    return any(type(m).__name__ == "FullyShardedDataParallel" for m in model.modules())
