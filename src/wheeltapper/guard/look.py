"""A look at every tensor, every `every` steps: weights, gradients, updates, second moments, EMA, inputs.

Computed on the device around one optimizer step and sent off as one flat tensor, like a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from wheeltapper.guard.activations import Activations
from wheeltapper.guard.measure import Gradients, Meter, norms
from wheeltapper.guard.record import Floats, TensorRecord
from wheeltapper.guard.sample import Layout, dense, local, placed
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
    graded: list[int] = field(default_factory=list)  # the parameters whose gradients' norms were taken, in their order
    ungraded: list[int] = field(default_factory=list)  # those of them that have none
    pushed: list[int] = field(default_factory=list)  # those of them whose gradient was sampled
    notes: dict[str, dict[str, Any]] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)  # whose outputs were measured
    kinds: dict[str, str] = field(default_factory=dict)

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

        each = meter.sizes**0.5
        grads = spread("grad", self.graded) / each
        grads[self.ungraded] = np.nan
        return TensorRecord(
            step=self.step,
            tick=self.tick,
            weight_rms=spread("weight", list(range(n))) / each,
            grad_rms=grads,
            update_rms=spread("update", meter.layout.order),
            moved=spread("moved", meter.layout.order),
            lag=spread("lag", self.lagged),
            active=spread("active", self.pushed),
            ema_distance=float(found["ema"][0]) if "ema" in found else float("nan"),
            absent=tuple(self.absent),
            ema_asked="ema" in found,
            buffers_broken=int(found["buffers"][0]) if "buffers" in found else 0,
            inputs=batch_facts("inputs", found, self.notes),
            targets=batch_facts("targets", found, self.notes),
            outputs={
                name: {"kind": self.kinds[name], "rms": rms, "zeros": zeros, "saturated": beyond, "nonfinite": int(bad)}
                for name, (rms, zeros, beyond, bad) in zip(
                    self.modules, found.get("outputs", np.zeros(0)).reshape(-1, 4).tolist(), strict=True
                )
            },
        )


def before_step(look: Look, gradients: Gradients) -> None:
    """What is taken before the optimizer moves the weights."""
    look.add("grad", gradients.each())
    look.graded = gradients.plan.order.tolist()
    look.ungraded = [i for i, p in enumerate(look.meter.params) if p.grad is None]
    look.add("weight", weight_norms(look.meter))


def weight_norms(meter: Meter) -> Any:
    """The norm of every parameter, in one vector."""
    parts = [torch.stack(norms([local(meter.params[i].detach()) for i in where])) for where in meter.buckets.values()]
    order = [i for where in meter.buckets.values() for i in where]
    flat = torch.cat([p.to(meter.device, non_blocking=True) for p in parts])
    return flat if order == sorted(order) else flat[placed(torch.tensor(order).argsort(), meter.device)]


def after_step(look: Look, before: Any, model: Any, optimizer: Any, ema: Any) -> None:
    """What the step did: the update, the share of coordinates it changed, the second moment it used."""
    meter, layout = look.meter, look.meter.layout
    after = meter.sample_weights()
    change = after - before
    look.add("moved", layout.sums((after != before).float()) / layout.lengths)
    look.add("update", layout.rms(change))
    of_gradients(look, optimizer)
    broken = broken_buffers(local(b) for b in model.buffers())
    if broken is not None:
        look.add("buffers", broken.to(meter.device, non_blocking=True))
    average = ema_sample(ema, meter)
    if average is not None:
        look.add("ema", torch.linalg.vector_norm(average - after) / torch.linalg.vector_norm(after))


def of_gradients(look: Look, optimizer: Any) -> None:
    """On the sample: the share of coordinates whose gradient is not exactly zero, those that a step must move; and RMS
    of g²/v of every tensor (KNOWLEDGE LR-11), near 1 while the second moment keeps up."""
    meter = look.meter
    grads: dict[int, Any] = {}
    moments: dict[int, Any] = {}
    for i in meter.sampled:
        p = meter.params[i]
        if p.grad is None:
            continue
        grad = local(p.grad)
        if grad.is_sparse or grad.dtype != p.dtype or not dense(grad):
            continue
        grads[i] = grad
        state = optimizer.state.get(p)
        moment = local(state.get("exp_avg_sq")) if isinstance(state, Mapping) else None
        # Without the same layout the sampled coordinates would not be the same ones.
        if moment is not None and moment.stride() == grad.stride() == local(p).stride():
            moments[i] = moment
    if not grads:
        return
    layout = meter.layout if len(grads) == len(meter.sampled) else Layout(grads, meter.params_local(), meter.device)
    g = layout.take(layout.views(grads))
    look.pushed = layout.order
    look.add("active", layout.sums((g != 0).float()) / layout.lengths)
    if not moments:
        return
    if len(moments) != len(grads):
        layout = Layout(moments, meter.params_local(), meter.device)
        g = layout.take(layout.views(grads))
    look.lagged = layout.order
    v = layout.take(layout.views(moments))
    correct, least = corrections(layout.order, meter, optimizer)
    v.div_(correct if isinstance(correct, float) else layout.spread(correct))
    v.clamp_(min=least if isinstance(least, float) else layout.spread(least))
    look.add("lag", layout.rms(g.div_(v.sqrt_())))


def corrections(order: list[int], meter: Meter, optimizer: Any) -> tuple[Any, Any]:
    """For each tensor 1 − β2^t, for a second moment starts at zero and is read through this, and the least second
    moment, ε². One number where it is the same for all; on the device where t is kept there."""
    betas, steps, floors = [], [], []
    for i in order:
        group, state = optimizer.param_groups[meter.group_of[i]], optimizer.state[meter.params[i]]
        pair, t = group.get("betas"), state.get("step")
        known = isinstance(pair, list | tuple) and isinstance(pair[1], int | float) and t is not None
        betas.append(float(pair[1]) if known else 0.0)
        steps.append(t if known else 1.0)
        floors.append(floor(group) ** 2)
    least = floors[0] if len(set(floors)) == 1 else placed(torch.tensor(floors), meter.device)
    away = {id(t): t for t in steps if isinstance(t, torch.Tensor) and t.device.type != "cpu"}
    if away:
        counts = torch.stack([t if id(t) in away else scalar(t, meter.device) for t in steps]).reshape(-1)
        base = betas[0] if len(set(betas)) == 1 else placed(torch.tensor(betas), meter.device)
        return 1.0 - torch.pow(base, counts.float()), least
    found = [1.0 - b ** float(t) for b, t in zip(betas, steps, strict=True)]
    return (found[0] if len(set(found)) == 1 else placed(torch.tensor(found), meter.device)), least


def scalar(value: Any, device: torch.device) -> Any:
    return placed(torch.tensor(float(value)), device)


def outputs(look: Look, seen: Activations) -> None:
    """What the modules put out in this step's forward pass."""
    if seen.failed is not None:
        raise seen.failed
    found = seen.taken()
    if found:
        look.modules = list(found)
        look.kinds = seen.kinds
        look.add("outputs", torch.stack([n.to(look.meter.device, non_blocking=True) for n in found.values()]))


def floor(group: Mapping[str, Any]) -> float:
    """The optimizer's ε; some keep two of them, the first for the second moment."""
    eps = group.get("eps", 1e-8)
    eps = eps[0] if isinstance(eps, list | tuple) and eps else eps
    return float(eps) if isinstance(eps, int | float) else 1e-8


def ema_sample(ema: Any, meter: Meter) -> Any:
    """The sampled coordinates of the averaged weights, None if they cannot be matched to the model's by name."""
    shadow = ema_tensors(ema)
    if shadow is None:
        return None
    twins: dict[int, Any] = {}
    for i in meter.sampled:
        twin = shadow.get(meter.names[i])
        p = local(meter.params[i])
        if (
            twin is None
            or local(twin).shape != p.shape
            or local(twin).device != p.device
            or local(twin).stride() != p.stride()
            or not twin.is_floating_point()
        ):
            return None
        twins[i] = local(twin.detach())
    return meter.layout.take(meter.layout.views(twins)) if twins else None


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
