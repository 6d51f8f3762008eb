"""A look at every tensor, every `every` steps: weights, gradients, updates, second moments, EMA, inputs.

Computed on the device around one optimizer step and sent off as one flat tensor, like a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from wheeltapper.guard.measure import Gradients, Meter, dense, local, norms, sample
from wheeltapper.guard.record import Floats, TensorRecord
from wheeltapper.guard.snapshot import broken_buffers


@dataclass
class Look:
    """The parts of one look on their way; `names` and `sizes` say how to cut the flat tensor again."""

    step: int
    tick: int
    meter: Meter
    absent: list[int]  # parameters without a gradient
    names: list[str] = field(default_factory=list)
    parts: list[Any] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    lagged: list[int] = field(default_factory=list)  # parameters with a second moment
    pushed: list[int] = field(default_factory=list)  # parameters with a gradient
    notes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, tensor: Any) -> None:
        self.names.append(name)
        self.parts.append(tensor.reshape(-1).float())
        self.sizes.append(tensor.numel())

    def tensor(self) -> Any:
        flat = torch.cat(self.parts)
        self.parts = []
        return flat

    def record(self, numbers: Any) -> TensorRecord:
        meter = self.meter
        found: dict[str, Floats] = {}
        at = 0
        for name, size in zip(self.names, self.sizes, strict=True):
            found[name] = np.asarray(numbers[at : at + size], dtype=np.float64)
            at += size
        n = len(meter.params)

        def spread(name: str, where: list[int]) -> Floats:
            full = np.full(n, np.nan)
            if name in found:
                full[where] = found[name]
            return full

        everywhere = list(range(n))
        grad = spread("grad", everywhere)
        grad[self.absent] = np.nan
        return TensorRecord(
            step=self.step,
            tick=self.tick,
            weight_rms=spread("weight", everywhere),
            grad_rms=grad,
            update_rms=spread("update", meter.sampled),
            moved=spread("moved", meter.sampled),
            lag=spread("lag", self.lagged),
            active=spread("active", self.pushed),
            ema_distance=float(found["ema"][0]) if "ema" in found else float("nan"),
            absent=tuple(self.absent),
            ema_asked="ema" in found,
            buffers_broken=int(found["buffers"][0]) if "buffers" in found else 0,
            inputs=batch_facts("inputs", found, self.notes),
            targets=batch_facts("targets", found, self.notes),
        )


def before_step(look: Look, gradients: Gradients) -> None:
    """What is taken before the optimizer moves the weights."""
    meter = look.meter
    each = gradients.each
    look.add("grad", each / meter.sizes.sqrt())
    weights = torch.stack([n.to(meter.device, non_blocking=True) for n in weight_norms(meter)])
    look.add("weight", weights / meter.sizes.sqrt())


def weight_norms(meter: Meter) -> list[Any]:
    found: list[Any] = [meter.nan] * len(meter.params)
    for where in meter.buckets.values():
        for i, n in zip(where, norms([local(meter.params[i].detach()) for i in where]), strict=True):
            found[i] = n
    return found


def after_step(look: Look, before: Any, after: Any, model: Any, optimizer: Any, ema: Any) -> None:
    """What the step did: the update, the share of coordinates it changed, the second moment it used."""
    meter = look.meter
    look.add("update", meter.per_tensor(after - before))
    changed = (after != before).float()
    look.add("moved", meter.per_tensor(changed).square())
    activity(look)
    broken = broken_buffers(local(b) for b in model.buffers())
    if broken is not None:
        look.add("buffers", broken.to(meter.device, non_blocking=True))
    lag(look, optimizer)
    average = ema_sample(ema, meter)
    if average is not None:
        look.add("ema", torch.linalg.vector_norm(average - after) / torch.linalg.vector_norm(after))


def activity(look: Look) -> None:
    """The share of the sampled coordinates whose gradient is not exactly zero: those that a step must move."""
    views, counts = [], []
    for i, count in zip(look.meter.sampled, look.meter.counts, strict=True):
        grad = look.meter.params[i].grad
        if grad is not None and not grad.is_sparse and dense(local(grad)):
            views += list(sample(local(grad)))
            counts.append(count)
            look.pushed.append(i)
    if views:
        parts = (torch.cat(views) != 0).float().split(counts)
        look.add("active", (torch.stack(norms(list(parts))) / look.meter.root_counts(counts)).square())


def lag(look: Look, optimizer: Any) -> None:
    """RMS of g²/v of every tensor (KNOWLEDGE LR-11): near 1 while the second moment keeps up."""
    meter = look.meter
    grads, moments, floors, counts = [], [], [], []
    for i, count in zip(meter.sampled, meter.counts, strict=True):
        p = meter.params[i]
        state = optimizer.state.get(p)
        moment = state.get("exp_avg_sq") if p.grad is not None and isinstance(state, Mapping) else None
        if (
            moment is None
            or p.grad.is_sparse
            or not local(moment).stride() == local(p.grad).stride() == local(p).stride()
        ):
            continue  # without the same layout the sampled coordinates would not be the same ones
        group = optimizer.param_groups[meter.group_of[i]]
        grads += list(sample(local(p.grad)))
        moments += list(sample(local(moment)))
        floors.append((correction(group, state), floor(group), count))
        look.lagged.append(i)
        counts.append(count)
    if not grads:
        return
    g = torch.cat(grads).float()
    v = torch.cat(moments).float()
    scaled = [m.div(c).clamp_(min=e * e) for m, (c, e, _) in zip(v.split(counts), floors, strict=True)]
    ratio = g / torch.cat(scaled).sqrt_()
    look.add("lag", torch.stack(norms(list(ratio.split(counts)))) / meter.root_counts(counts))


def floor(group: Mapping[str, Any]) -> float:
    """The optimizer's ε; some keep two of them, the first for the second moment."""
    eps = group.get("eps", 1e-8)
    eps = eps[0] if isinstance(eps, list | tuple) and eps else eps
    return float(eps) if isinstance(eps, int | float) else 1e-8


def correction(group: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    """1 − β2^t: a second moment starts at zero and is read through this. On the device where t is kept there."""
    betas, t = group.get("betas"), state.get("step")
    if not isinstance(betas, list | tuple) or not isinstance(betas[1], int | float) or t is None:
        return 1.0
    beta = float(betas[1])
    if isinstance(t, torch.Tensor) and t.device.type != "cpu":
        return 1.0 - torch.pow(beta, t)
    return 1.0 - beta ** float(t)


def ema_sample(ema: Any, meter: Meter) -> Any:
    """The sampled coordinates of the averaged weights, None if they cannot be matched to the model's by name."""
    shadow = ema_tensors(ema)
    if shadow is None:
        return None
    views: list[Any] = []
    for i in meter.sampled:
        twin = shadow.get(meter.names[i])
        p = local(meter.params[i])
        if (
            twin is None
            or local(twin).shape != p.shape
            or local(twin).device != p.device
            or local(twin).stride() != p.stride()
        ):
            return None
        views += list(sample(local(twin.detach())))
    return torch.cat(views).float()


def ema_tensors(ema: Any) -> dict[str, Any] | None:
    """Name -> averaged tensor, from the ways an EMA is kept: AveragedModel, a copy of the model, a wrapper that
    holds one, a dict."""
    if isinstance(ema, Mapping):
        return {str(k): v for k, v in ema.items() if isinstance(v, torch.Tensor)}
    for holder in (
        ema,
        *(getattr(ema, name, None) for name in ("module", "ema_model", "model", "ema", "averaged_model")),
    ):
        if isinstance(holder, torch.nn.Module):
            return {n.removeprefix("module."): p for n, p in holder.named_parameters()}
        if isinstance(holder, Mapping) and holder and all(isinstance(v, torch.Tensor) for v in holder.values()):
            return {str(k): v for k, v in holder.items()}
    shadow = getattr(ema, "shadow", None)
    return ema_tensors(shadow) if isinstance(shadow, Mapping) else None


# Batches


def batch_part(look: Look, kind: str, batch: Any) -> None:
    """Range, non-finite count and constant channels of the first tensor in a batch. A channel is dimension 1 of
    images, volumes and sequences of features, the last one of a table."""
    tensor = first_tensor(batch)
    if tensor is None or tensor.numel() == 0 or tensor.is_sparse or tensor.is_complex():
        return
    x, device = tensor.detach(), look.meter.device
    look.notes[kind] = {"shape": tuple(x.shape), "dtype": str(x.dtype).removeprefix("torch.")}
    wide = x.float()
    low, high = torch.aminmax(wide)
    parts = [low, high, (~torch.isfinite(wide)).sum().float(), wide.mean()]
    look.add(kind, torch.stack(parts).to(device, non_blocking=True))
    if x.is_floating_point() and x.dim() >= 2 and x.shape[0] > 1:
        channel = 1 if x.dim() > 2 else x.dim() - 1
        rest = [d for d in range(x.dim()) if d != channel]
        spread = torch.amax(wide, rest) - torch.amin(wide, rest)
        look.add(f"{kind}.spread", spread.to(device, non_blocking=True))


def first_tensor(batch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return local(batch)
    items = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, list | tuple) else ()
    return next((t for t in map(first_tensor, items) if t is not None), None)


def batch_facts(kind: str, found: Mapping[str, Floats], notes: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    if kind not in found:
        return {}
    low, high, bad, mean = (float(v) for v in found[kind])
    facts = {**notes[kind], "min": low, "max": high, "nonfinite": int(bad), "mean": mean}
    if f"{kind}.spread" in found:
        facts["constant_channels"] = [int(i) for i in np.flatnonzero(found[f"{kind}.spread"] == 0)]
    return facts
