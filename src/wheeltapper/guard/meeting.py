"""The step boundaries at which all ranks meet: do their weights agree, and does any of them want to act?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from wheeltapper.guard.acts import Want
from wheeltapper.guard.judge import Alarm
from wheeltapper.guard.look import weight_norms
from wheeltapper.guard.measure import norms
from wheeltapper.guard.ranks import AGREE
from wheeltapper.guard.verdict import act, alarm

if TYPE_CHECKING:
    from wheeltapper.guard.core import Guard

# Each rank computes its own batch statistics; DDP hands out rank 0's at the next forward pass.
BATCH_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def meet(guard: Guard) -> None:
    """Called by every rank after every optimizer step, also by one whose guard is passive."""
    count, guard._meetings = guard._meetings, guard._meetings + 1
    try:
        with torch.no_grad():
            if count % guard.every == 0:
                if guard.passive is None:
                    guard._leave()  # what is sent now must not overtake the row of the step
                agree(guard)
            if guard.policy in ("cut", "rollback", "stop") and count % AGREE == 0:
                decide(guard)
    except Exception as error:
        guard._fail("meeting the other ranks", error)


def attend(guard: Guard) -> None:
    """Under policy="skip" the ranks meet before every step. A rank whose guard has failed comes too, and says so."""
    actor, device = getattr(guard, "_actor", None), next(guard.model.parameters()).device
    if actor is not None and actor.met:
        actor.met = False
        return
    try:
        guard._ranks.before_step(torch.tensor([0.0, 0.0, float("inf"), 0.0, 1.0], device=device))
    except Exception as error:
        guard._fail("meeting the other ranks", error)


def agree(guard: Guard) -> None:
    """Weights and buffers by their norms: equal numbers have equal norms, bit for bit. Under sharding the norms are
    parts of one whole instead, and are added up. The answer is read when it comes."""
    ranks = guard._ranks
    meter = getattr(guard, "_meter", None)
    seen = guard._last.gradients if guard._last is not None else None
    absent = float(guard.passive is not None)
    if ranks.sharded:
        mine = torch.full((1,), float("nan")) if seen is None else seen.total().square().reshape(1) / ranks.copies
        both = torch.cat([mine, mine.new_full((1,), absent)])
        both = ranks.reduce(both.to(ranks.meeting_device(mine.device)), "sum")
        if meter is not None and guard.passive is None:
            guard._outbox.send(both.sqrt().to(meter.device, non_blocking=True), ("norm", guard.tick))
        return
    found = checksums(guard) if guard.passive is None and meter is not None else None
    size = checksum_size(guard)
    if found is None or found.numel() != size:
        found = torch.full((size,), float("-inf"), device=next(guard.model.parameters()).device)
        both = torch.cat([found, found, found.new_full((1,), absent)])  # says nothing against anyone
    else:
        both = torch.cat([found, -found, found.new_full((1,), absent)])
    both = ranks.reduce(both.to(ranks.meeting_device(both.device)), "max")
    # Of equal numbers the largest and the smallest are the same; nan compares with nothing and counts as equal.
    differ = torch.stack([((both[:size] + both[size:-1]) > 0).sum().float(), both[-1]])
    if guard.passive is None and meter is not None:
        guard._outbox.send(differ.to(meter.device, non_blocking=True), ("ranks", guard.tick))


def checksums(guard: Guard) -> Any:
    weights = weight_norms(guard._meter)
    extra = buffers(guard)
    return torch.cat([weights, torch.stack([n.float() for n in norms(extra)]).to(weights.device)]) if extra else weights


def checksum_size(guard: Guard) -> int:
    return sum(len(g["params"]) for g in guard.optimizer.param_groups) + len(buffers(guard))


def buffers(guard: Guard) -> list[Any]:
    return [
        b
        for n, b in guard.model.named_buffers()
        if b.is_floating_point() and b.numel() and n.rpartition(".")[2] not in BATCH_STATISTICS
    ]


def decide(guard: Guard) -> None:
    """One verdict: if a rank wants to act, all do, from the earliest onset and with the budget of the one that has used
    most; if all are calm, all keep their state, so that they can go back to the same. This waits for the ranks."""
    ranks, actor = guard._ranks, getattr(guard, "_actor", None)
    want = actor.want if actor is not None else None
    mine = [1.0, 0.0, float("-inf"), 0.0, 0.0]
    if guard.passive is None and actor is not None:
        onset = -float(want.onset) if want else float("-inf")
        mine = [0.0, float(want is not None), onset, float(actor.used), float(not guard._judge.calm())]
    device = ranks.meeting_device(next(guard.model.parameters()).device)
    met = ranks.reduce(torch.tensor(mine, dtype=torch.float64, device=device), "max").tolist()
    passive, wanted, onset, used, unrest = met
    if passive or actor is None:
        if guard.passive is None:
            guard._fail("another rank", RuntimeError("its guard has stopped looking, so none acts"))
        return
    if used > actor.used:
        actor.used = int(used)
        actor.spent = actor.used >= actor.limit
    if wanted:
        act(guard, Want(int(-onset), want.reason if want else "Another rank asked for it."))
    else:
        actor.keep(guard.at, guard.tick, calm=not unrest)


def met(guard: Guard, what: tuple[str, int], numbers: Any) -> None:
    """What a meeting found, once it has come to the host."""
    kind, tick = what
    if numbers[1]:
        text = "The guard of another rank has stopped looking." + " No step is skipped." * (guard.policy == "skip")
        alarm(guard, Alarm("rank-lost", text, "warning", guard.at), tick)
    if kind == "norm":
        guard.global_norm = float(numbers[0])
        return
    guard.ranks_agree = bool(numbers[0] == 0)
    if not guard.ranks_agree:
        text = f"{numbers[0]:.0f} weights or buffers are not the same on all ranks."
        alarm(guard, Alarm("ranks-differ", text, "error", guard.at, {"tensors": int(numbers[0])}), tick)
