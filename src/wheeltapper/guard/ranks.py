"""Several processes, one verdict. Collectives are used only where we know who takes part: the group of a DDP model,
the mesh of a sharded one, or a group the user names. They are called at fixed steps, by every rank, also by one
whose guard has gone passive, for a rank that stays away would make the others wait for ever.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch

AGREE = 8  # steps between meetings under a policy that acts: the longest measured lead of a precursor (PRG-07)


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among the others. `group` None: alone, or not known to be otherwise."""

    rank: int = 0
    world: int = 1
    group: Any = None
    sharded: bool = False
    buffers_own: bool = False  # DDP(broadcast_buffers=False): each rank keeps its own batch statistics

    def reduce(self, values: Any, how: str) -> Any:
        """All ranks' values put together, in place: "max", "min" or "sum"."""
        import torch.distributed as dist

        dist.all_reduce(values, getattr(dist.ReduceOp, how.upper()), group=self.group)
        return values

    def meeting_device(self, device: torch.device) -> torch.device:
        """Where a small tensor must be for this group's backend."""
        import torch.distributed as dist

        return device if "nccl" in str(dist.get_backend(self.group)) else torch.device("cpu")


def find(model: Any, process_group: Any = None) -> Ranks:
    """Who we are, from the model's own wrapping."""
    available = torch.distributed.is_available() and torch.distributed.is_initialized()
    if not available:
        return Ranks(rank=int(os.environ.get("RANK", "0") or 0))
    import torch.distributed as dist

    rank, world = dist.get_rank(), dist.get_world_size()
    meshes = [p.device_mesh for p in model.parameters() if hasattr(p, "device_mesh")]
    sharded = bool(meshes) or old_sharding(model)
    group = process_group
    own = False
    if group is None and type(model).__name__ == "DistributedDataParallel":
        joined = getattr(getattr(model, "_join_config", None), "enable", False)
        group, own = (None if joined else model.process_group), not model.broadcast_buffers
    if group is None and sharded and (not meshes or meshes[0].size() == world):
        group = dist.group.WORLD
    if group is not None and dist.get_world_size(group) < 2:
        group = None
    return Ranks(rank, world, group, sharded, own)


def old_sharding(model: Any) -> bool:
    """Whether the model is sharded by FSDP1, whose state_dict is a gathered copy and not the state itself."""
    return any(type(m).__name__ == "FullyShardedDataParallel" for m in model.modules())
