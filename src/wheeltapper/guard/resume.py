"""A run that goes on in a fresh process, from the newest checkpoint that every rank still has whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from wheeltapper.guard.disk import Journal, good_steps, sound
from wheeltapper.guard.ranks import Ranks
from wheeltapper.guard.rng import capture
from wheeltapper.guard.snapshot import load, same_model

if TYPE_CHECKING:
    from wheeltapper.guard.core import Guard


def resume(guard: Guard) -> int | None:
    """Called on every rank. Under DDP all read what rank 0 wrote, and their own random states beside it; sharded ranks
    each read their own part."""
    ranks = guard._ranks
    mine = guard._journal
    journal = mine if not ranks.rank or ranks.sharded else Journal(guard.run_dir)
    for step in common(ranks, good_steps(journal)):
        found = sound(journal, step)
        if not everywhere(ranks, found is not None) or found is None:
            continue
        state, path = found
        if journal is not mine:
            own = sound(mine, step)
            state["rng"] = own[0]["rng"] if own else capture()
        same_model(guard.model, state, path.name)
        with torch.no_grad():
            load(guard._parts(), state, replay=True)
        guard.at = step
        mine.write("resume", step=step, file=path.name)
        return step
    return None


def common(ranks: Ranks, steps: list[int]) -> list[int]:
    """The steps that all ranks have, newest first."""
    if ranks.group is None:
        return steps
    import torch.distributed as dist

    all_steps: list[Any] = [None] * dist.get_world_size(ranks.group)
    dist.all_gather_object(all_steps, steps, group=ranks.group)
    return [s for s in all_steps[0] if all(s in others for others in all_steps)]


def everywhere(ranks: Ranks, mine: bool) -> bool:
    """Whether it is so on every rank."""
    return len(common(ranks, [1] if mine else [])) == 1
