"""The whole state of a training at a step boundary, copied to the host, and put back in place.

A boundary is right after optimizer.step(), before the loop's own scheduler.step(), scaler.update() and EMA update.
Taken there and put back there, the rest of the loop's iteration brings everything to the same place. On a GPU the
copies are asynchronous into pinned memory; `ready` says when they, and the count of non-finite numbers, have come.
Restoring writes into the tensors that are there: no tensor of the model or optimizer is replaced.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from wheeltapper.errors import InputError
from wheeltapper.guard import rng
from wheeltapper.guard.judge import listed
from wheeltapper.guard.measure import norms
from wheeltapper.guard.ranks import old_sharding
from wheeltapper.guard.sample import local


@dataclass(frozen=True, slots=True)
class Parts:
    """The training's objects that have state."""

    model: Any
    optimizer: Any
    scheduler: Any = None
    scaler: Any = None
    ema: Any = None
    loader: Any = None


def fit(model: Any, optimizer: Any, scaler: Any, scheduler: Any = None, ema: Any = None) -> None:
    """Refuse what is not a model or an optimizer at once: a guard that found out later would go passive in silence. And
    what has no state that could be kept: a rollback would leave it where it was, unseen."""
    if not all(
        callable(getattr(model, name, None)) for name in ("named_parameters", "parameters", "buffers", "modules")
    ):
        raise InputError(
            f"model is a {type(model).__name__}, not a torch.nn.Module", do="Call Guard(model, optimizer)."
        )
    groups = getattr(optimizer, "param_groups", None)
    if not isinstance(groups, list) or not hasattr(optimizer, "register_step_pre_hook"):
        raise InputError(
            f"optimizer is a {type(optimizer).__name__}, not a torch.optim.Optimizer",
            do="Call Guard(model, optimizer) with the optimizer itself, not a wrapper around it.",
        )
    if not any(group["params"] for group in groups):
        raise InputError("the optimizer has no parameters")
    if scaler is not None and not hasattr(scaler, "get_scale"):
        raise InputError(f"scaler is a {type(scaler).__name__}, not a torch.amp.GradScaler")
    for name, part in (("scheduler", scheduler), ("ema", ema)):
        if part is not None and not hasattr(part, "state_dict") and not (name == "ema" and isinstance(part, Mapping)):
            either = " nor a dict of tensors: give the dict it holds them in" if name == "ema" else ": leave it out"
            raise InputError(f"{name} is a {type(part).__name__}", do=f"It has no state_dict{either}.")


@dataclass
class Snapshot:
    """One state. `bad` is the count of tensors that are not finite, on the host once `ready`."""

    step: int
    tick: int
    state: dict[str, Any]
    bad: Any
    event: Any = None
    small: dict[str, Any] = field(default_factory=dict)  # scheduler, scaler, EMA, groups at the end of the iteration

    def ready(self, wait: bool = False) -> bool:
        if self.event is not None and wait:
            self.event.synchronize()
        return self.event is None or bool(self.event.query())

    def finite(self) -> bool:
        """Waits for the copy."""
        self.ready(wait=True)
        return float(self.bad) == 0


def take(parts: Parts, step: int, tick: int) -> Snapshot:
    """Copy everything. With a scaler this waits once for the device, for its state_dict does."""
    model = unwrapped(parts.model)
    state: dict[str, Any] = {
        "step": step,
        "tick": tick,
        "model": clone(live(model)),
        "buffers": [n for n, _ in model.named_buffers()],
        "hidden": clone(hidden_buffers(model)),
        "optimizer": clone(parts.optimizer.state_dict()),
        "rng": rng.capture(),
        **small_state(parts),
    }
    if parts.loader is not None and hasattr(parts.loader, "state_dict"):
        state["loader"] = copy.deepcopy(parts.loader.state_dict())
    bad = unsound(live(model), state["buffers"], parts.optimizer.state_dict())
    event = None
    if isinstance(bad, torch.Tensor) and bad.device.type == "cuda":
        bad = to_host(bad)
        event = torch.cuda.Event()
        event.record()
    return Snapshot(step, tick, state, bad, event)


def small_state(parts: Parts) -> dict[str, Any]:
    """What the loop changes between optimizer.step() and the next batch."""
    state: dict[str, Any] = {"groups": groups(parts.optimizer)}
    for name, part in (("scheduler", parts.scheduler), ("scaler", parts.scaler)):
        if part is not None and hasattr(part, "state_dict"):
            state[name] = copy.deepcopy(part.state_dict())
    if parts.ema is not None:
        state["ema"] = clone(held(parts.ema))
    return state


def put_back(parts: Parts, snapshot: Snapshot, *, replay: bool = False) -> None:
    """Make the training what it was. `replay` also moves the loader back, so that the same batches come again."""
    snapshot.ready(wait=True)
    load(parts, snapshot.state, replay=replay)


def load(parts: Parts, state: Mapping[str, Any], *, replay: bool = False) -> None:
    """Put a state (a snapshot's, or one read from disk) into the training's objects, in place."""
    model = unwrapped(parts.model)
    overwrite(live(model), state["model"])
    overwrite(hidden_buffers(model), state.get("hidden", {}))
    load_optimizer(parts.optimizer, state["optimizer"])
    for group, saved in zip(parts.optimizer.param_groups, state["groups"], strict=False):
        set_group(group, saved)
    if parts.scheduler is not None and "scheduler" in state:
        parts.scheduler.load_state_dict(copy.deepcopy(state["scheduler"]))
    if parts.scaler is not None and state.get("scaler"):
        parts.scaler.load_state_dict(state["scaler"])
    if parts.ema is not None and "ema" in state:
        overwrite(held(parts.ema), state["ema"])
    if replay and "loader" in state and hasattr(parts.loader, "load_state_dict"):
        parts.loader.load_state_dict(copy.deepcopy(state["loader"]))
    rng.restore(state["rng"])


def same_model(model: Any, state: Mapping[str, Any], name: str) -> None:
    """Refuse a saved state whose tensors are not those of the model: loading only what fits would leave the rest at
    its first weights, unseen."""
    here = {k: local(v).shape for k, v in live(unwrapped(model)).items() if isinstance(v, torch.Tensor)}
    saved = {k: v.shape for k, v in state["model"].items() if isinstance(v, torch.Tensor)}
    other = [k for k in {**here, **saved} if here.get(k) != saved.get(k)]
    if other:
        raise InputError(
            f"{name} was saved from another model; what differs: {listed(other, range(len(other)))}",
            do="Build the model as it was then, or give a run_dir of its own.",
        )


def load_optimizer(optimizer: Any, saved: Mapping[str, Any]) -> None:
    """Per-parameter state in place; what was not there then is dropped, what is missing now is made."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    for i, p in enumerate(params):
        then = saved["state"].get(i)
        if then is None:
            optimizer.state.pop(p, None)
            continue
        now = optimizer.state[p]
        for key in [k for k in now if k not in then]:
            del now[key]
        for key, value in then.items():
            here = now.get(key)
            if isinstance(here, torch.Tensor) and isinstance(value, torch.Tensor) and local(here).shape == value.shape:
                local(here).copy_(value)
            elif isinstance(value, torch.Tensor) and value.dim() > 0:
                now[key] = value.to(p.device, copy=True)
            else:
                now[key] = copy.deepcopy(value)


def groups(optimizer: Any) -> list[dict[str, Any]]:
    return [{k: clone(v) for k, v in g.items() if k != "params"} for g in optimizer.param_groups]


def set_group(group: dict[str, Any], saved: Mapping[str, Any]) -> None:
    for key, value in saved.items():
        if isinstance(group.get(key), torch.Tensor) and isinstance(value, torch.Tensor):
            group[key].copy_(value)
        elif key != "params":
            group[key] = copy.deepcopy(value)


def held(ema: Any) -> Any:
    """The live state of an EMA: what state_dict gives of a module or an object, or the mapping itself."""
    if isinstance(ema, Mapping):
        return ema
    return ema.state_dict() if hasattr(ema, "state_dict") else {}


def live(model: Any) -> dict[str, Any]:
    """The tensors themselves, by name. FSDP1's state_dict is a copy gathered from all ranks: there they are this rank's
    shards, as they lie between steps."""
    if old_sharding(model):
        return {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return dict(model.state_dict())


def hidden_buffers(model: Any) -> dict[str, Any]:
    """Buffers that state_dict leaves out."""
    known = set(live(model))
    return {n: b for n, b in model.named_buffers() if n not in known}


def unwrapped(model: Any) -> Any:
    """The model inside DDP and torch.compile."""
    while True:
        if type(model).__name__ in ("DistributedDataParallel", "DataParallel"):
            model = model.module
        elif hasattr(model, "_orig_mod"):
            model = model._orig_mod
        else:
            return model


def overwrite(into: Any, saved: Any) -> None:
    """Copy saved tensors into the live ones of the same place."""
    for key, value in saved.items():
        here = into.get(key)
        if isinstance(here, torch.Tensor) and isinstance(value, torch.Tensor):
            local(here).copy_(value)
        elif isinstance(here, Mapping) and isinstance(value, Mapping):
            overwrite(here, value)
        elif isinstance(here, list) and isinstance(value, list) and len(here) == len(value):
            overwrite(dict(enumerate(here)), dict(enumerate(value)))


def to_host(tensor: Any) -> Any:
    """A copy on the host; from a GPU asynchronous, into pinned memory."""
    tensor = local(tensor).detach()
    if tensor.device.type == "cuda":
        host = torch.empty_like(tensor, device="cpu", pin_memory=True)
        return host.copy_(tensor, non_blocking=True)
    return tensor.clone() if tensor.device.type == "cpu" else tensor.cpu()


def clone(value: Any) -> Any:
    """A deep copy with every tensor on the host."""
    if isinstance(value, torch.Tensor):
        return to_host(value)
    if isinstance(value, Mapping):
        return {k: clone(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(clone(v) for v in value)
    return copy.deepcopy(value)


def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [local(value)]
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [t for item in items for t in tensors_in(item)]


def unsound(model: Mapping[str, Any], buffers: Iterable[str], optimizer: Any) -> Any:
    """How many tensors hold what no good state holds: in weights and moments a number that is not finite; in buffers
    only nan, for an attention mask of -inf belongs to its model. A device scalar."""
    names = set(buffers)
    count = nonfinite(tensors_in(([v for k, v in model.items() if k not in names], optimizer)))
    broken = broken_buffers([local(v) for k, v in model.items() if k in names])
    return count if broken is None else count + broken.to(count.device, non_blocking=True)


def broken_buffers(buffers: Iterable[Any]) -> Any:
    """How many buffers hold nan, as a device scalar; None if none could."""
    floats = [b for b in buffers if b.is_floating_point() and b.numel()]
    return nonfinite(floats, nan_only=True) if floats else None


def nonfinite(tensors: list[Any], nan_only: bool = False) -> Any:
    """How many tensors hold a number that is not finite: a device scalar, added up where the first tensor is."""
    kinds: dict[tuple[Any, Any], list[Any]] = {}
    for t in tensors:
        if t.numel() and t.is_floating_point():
            kinds.setdefault((t.device, t.dtype), []).append(t)
    total: Any = None
    for same in sorted(kinds.values(), key=lambda ts: ts[0].device.type == "cpu"):
        sizes = torch.stack(norms(same))
        count = (torch.isnan(sizes) if nan_only else ~torch.isfinite(sizes)).sum().float()
        total = count if total is None else total + count.to(total.device, non_blocking=True)
    return torch.zeros(()) if total is None else total
