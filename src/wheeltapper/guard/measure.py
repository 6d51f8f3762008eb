"""The numbers of a step, computed where the tensors are, in a few launches and without asking the device anything.

What counts is the host's time: each call costs it 5 to 25 µs, and each tensor that a call hands out another. So the
norms of large gradients come from one `_foreach_norm` per dtype and device, those of the many short ones (biases, gains)
from one concatenation and one segmented sum, and everything of a step leaves in one copy. What need not be computed on
the device (square roots, the loss scale, groups) is made on the host, when the numbers have come there.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import is_
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wheeltapper.guard import fused
from wheeltapper.guard.outbox import Outbox
from wheeltapper.guard.sample import SHORT_RUN, Layout, Moves, dense, largest, local, placed

log = logging.getLogger("wheeltapper.guard")

# loss, scale, skip, overflow, the gradients' own scale, two norms of the sample; then the groups' norms, where they are
# made on the device, and the gradients
HEAD = 7
SHORT = 4096  # a one-dimensional gradient of so many numbers is cheaper copied than measured by itself


@dataclass(frozen=True, slots=True)
class Plan:
    """How a set of gradients is measured: by what is there, and of which kind."""

    norms: tuple[tuple[bool, list[int]], ...]  # taken as norms, by dtype and device; whether on the guard's device
    sums: tuple[tuple[list[int], Any], ...]  # taken as sums of squares, with their offsets
    order: NDArray[np.int64]  # the parameter that each number belongs to
    roots: int  # from here on the numbers are squares
    slots: list[Any]  # where they go in the row
    odd: frozenset[int]  # sparse
    device: torch.device


@dataclass(frozen=True, slots=True)
class Gradients:
    """One look at the gradients. `parts` are numbers on the device, as `plan` says; `divisor` is the loss scale that is
    still in them."""

    parts: list[Any]
    plan: Plan
    divisor: Any = None
    fused: fused.Fused | None = None  # who has them, in place of `parts`

    def each(self) -> Any:
        """Their true norms in the order of the plan."""
        if self.fused is not None:
            flat = self.fused.norms()
        elif self.parts:
            flat = torch.cat([p.reshape(-1) for p in self.parts])
            flat[self.plan.roots :].sqrt_()
        else:
            flat = torch.zeros(0, device=self.plan.device)
        return flat if self.divisor is None else flat / self.divisor

    def total(self) -> Any:
        return torch.linalg.vector_norm(self.each())

    def bad(self) -> Any:
        """How many are not finite."""
        return (~torch.isfinite(self.each())).sum().float()


def values(grad: Any) -> Any:
    """The stored numbers of a gradient. A sparse one is taken uncoalesced: coalescing would wait for the device."""
    grad = local(grad)
    return grad._values() if grad.is_sparse else grad


def norms(tensors: Sequence[Any]) -> list[Any]:
    """The L2 norm of each tensor in float32, whatever the dtype: an fp16 norm overflows at 65504."""
    if tensors[0].dtype == torch.float32:
        return list(torch._foreach_norm(tensors, 2))
    try:
        return list(torch._foreach_norm(tensors, 2, dtype=torch.float32))
    except (TypeError, RuntimeError):  # torch before 2.4 has no dtype here, and none narrows a float64
        wide = [t if t.dtype != torch.float16 else t.float() for t in tensors]
        return [n.float() for n in torch._foreach_norm(wide, 2)]


class Meter:
    """Knows the parameters of an optimizer, their names and groups, and measures them."""

    def __init__(self, names: list[str], params: list[Any], group_of: list[int], device: torch.device) -> None:
        self.names = tuple(names)
        self.params = params
        self.device = device
        self.group_of = np.asarray(group_of, dtype=np.int64)
        self.groups = int(self.group_of.max()) + 1 if group_of else 0
        self.sharded = any(hasattr(p, "_local_tensor") for p in params)
        self.first = HEAD + self.groups  # from here on the row holds what belongs to one gradient each
        self.row = torch.zeros(self.first + len(params) + 1, device=device)  # and a mark, where the device writes it
        self._head, self._update = list(self.row[: HEAD - 2].unbind(0)), self.row[HEAD - 2 : HEAD]
        self._plans: dict[tuple[int, ...], Plan] = {}
        self.buckets: dict[tuple[Any, Any], list[int]] = {}
        for i, p in enumerate(params):
            self.buckets.setdefault((p.device, p.dtype), []).append(i)
        self.sizes = np.array([max(local(p).numel(), 1) for p in params], dtype=np.float64)
        self.fused = None if self.sharded else fused.build(params, group_of, self.row, HEAD)
        self._all = Plan((), (), np.arange(len(params)), len(params), [], frozenset(), device)
        self.found = Gradients([], self._all, None, self.fused)
        self.build_sample()

    @classmethod
    def of(cls, optimizer: Any, names: dict[int, str]) -> Meter:
        """For the parameters of an optimizer; `names` by their id."""
        params, labels, group_of = [], [], []
        for g, group in enumerate(optimizer.param_groups):
            for k, p in enumerate(group["params"]):
                params.append(p)
                labels.append(names.get(id(p), f"group{g}.{k}"))
                group_of.append(g)
        return cls(labels, params, group_of, params[0].device if params else torch.device("cpu"))

    def scalar(self, value: Any) -> Any:
        """A scalar tensor as float32 on the guard's device, without waiting."""
        if value.dim() == 0 and value.dtype == torch.float32 and value.device == self.device:
            return value
        return local(value).reshape(()).to(self.device, torch.float32, non_blocking=True)

    # Gradients

    def gradients(self, divisor: Any = None) -> Gradients:
        """Measure the gradients there are now; `divisor` (a device scalar) is the loss scale they hold."""
        grads = [p.grad for p in self.params]
        if self.fused is not None:
            try:
                self.fused.gradients(grads)
                return self.found if divisor is None else Gradients([], self._all, divisor, self.fused)
            except Exception as error:  # of a kind the kernel cannot read; torch's calls can, or say why not
                log.info("the guard measures by torch's own calls from here, which cost the host more: %s", error)
                self.fused = None
                self.build_sample()
        if self.sharded:
            grads = [None if g is None else local(g) for g in grads]
        absent = () if not sum(map(is_, grads, repeat(None))) else tuple(i for i, g in enumerate(grads) if g is None)
        plan = self._plans.get(absent)
        if plan is None:
            plan = self._keep(absent, grads)
        try:
            return Gradients(self._parts(plan, grads), plan, divisor)
        except (RuntimeError, TypeError):  # of another kind than they were: sparse, or elsewhere
            plan = self._keep(absent, grads)
            return Gradients(self._parts(plan, grads), plan, divisor)

    def _parts(self, plan: Plan, grads: list[Any]) -> list[Any]:
        for i in plan.odd:
            grads[i] = values(grads[i])
        parts: list[Any] = []
        for here, which in plan.norms:
            found = norms([grads[i] for i in which])
            parts += found if here else [torch.stack(found).to(self.device, non_blocking=True)]
        for which, offsets in plan.sums:
            flat = torch.cat([grads[i] for i in which])
            flat = flat.mul_(flat) if flat.dtype == torch.float32 else flat.float().square_()
            parts.append(torch.segment_reduce(flat, "sum", offsets=offsets, unsafe=True))
        return parts

    def _keep(self, absent: tuple[int, ...], grads: list[Any]) -> Plan:
        if len(self._plans) >= 16:  # a model with branches: those of late
            self._plans.clear()
        plan = self._plans[absent] = self._plan(grads)
        return plan

    def _plan(self, grads: list[Any]) -> Plan:
        single: dict[tuple[Any, Any], list[int]] = {}
        short: dict[Any, list[int]] = {}
        odd = frozenset(i for i, g in enumerate(grads) if g is not None and g.is_sparse)
        for i, g in enumerate(grads):
            if g is None:
                continue
            if (
                g.device == self.device
                and g.is_floating_point()
                and i not in odd
                and g.dim() == 1
                and 0 < g.numel() <= SHORT
            ):
                short.setdefault(g.dtype, []).append(i)
            else:
                single.setdefault((g.device, g.dtype), []).append(i)
        order = [i for which in (*single.values(), *short.values()) for i in which]
        roots = sum(len(which) for which in single.values())
        slots: list[Any] = []
        at = self.first
        for (device, _), which in single.items():
            here = self.row[at : at + len(which)]
            slots += here.unbind(0) if device == self.device else [here]
            at += len(which)
        sums = []
        for which in short.values():
            slots.append(self.row[at : at + len(which)])
            at += len(which)
            ends = np.cumsum([grads[i].numel() for i in which]).tolist()
            sums.append((which, placed(torch.tensor([0, *ends], dtype=torch.long), self.device)))
        kinds = tuple((device == self.device, which) for (device, _), which in single.items())
        return Plan(kinds, tuple(sums), np.array(order, dtype=np.int64), roots, slots, odd, self.device)

    def send(self, outbox: Outbox, what: Any, head: list[Any], update: Any, gradients: Gradients | None) -> bool:
        """Send the row with these numbers in it; what is None keeps what an earlier step left there. One launch. Returns
        whether the update is in it."""
        if self.fused is not None and (gradients is None or gradients.fused is self.fused):
            scalars = [None if h is None else self.scalar(h) for h in head]
            return self.fused.send(scalars, update is not None, outbox, what)
        slots = [s for s, h in zip(self._head, head, strict=True) if h is not None]
        parts = [self.scalar(h) for h in head if h is not None]
        if update is not None:
            slots.append(self._update)
            parts.append(update)
        if gradients is not None:
            slots += gradients.plan.slots
            parts += gradients.parts
        if slots:
            torch._foreach_copy_(slots, parts)
        outbox.send(self.row, what, row=True)
        return update is not None

    def true_norms(self, numbers: NDArray[np.float32], gradients: Gradients, divisor: float) -> NDArray[np.float64]:
        """The norm of every parameter's gradient, 0 where there is none, out of a row that has come."""
        plan = gradients.plan
        found = numbers[self.first : self.first + len(plan.order)].astype(np.float64)
        np.sqrt(found[plan.roots :], out=found[plan.roots :])
        if gradients.divisor is not None:
            found /= divisor
        each = np.zeros(len(self.params))
        each[plan.order] = found
        return each

    def params_local(self) -> list[Any]:
        return [local(p.detach()) for p in self.params]

    def without_gradient(self) -> list[int]:
        return [i for i, p in enumerate(self.params) if p.requires_grad and p.grad is None and local(p).numel()]

    # The sample

    def build_sample(self) -> None:
        """What is sampled of the weights. Made again when a parameter has moved to other storage."""
        tensors = self.params_local()
        self.sampled = [
            i
            for i, t in enumerate(tensors)
            if t.device == self.device and t.is_floating_point() and t.numel() and dense(t)
        ]
        self.layout = Layout(self.sampled, tensors, self.device)
        self.views = self.layout.views(tensors)
        chosen = [self.sampled[k] for k in largest([tensors[i].numel() for i in self.sampled])]
        self.moves: Moves | fused.Moves | None = None
        if chosen and self.fused is not None:
            self.moves = self.fused.sample(self.params, Layout(chosen, tensors, self.device, SHORT_RUN))
        elif chosen:
            self.moves = Moves(self.params, chosen, self.device)
        self._keys = [t.data_ptr() for t in tensors]

    def moved_storage(self) -> bool:
        return self._keys != [local(p).data_ptr() for p in self.params]

    def sample_weights(self) -> Any:
        """The sampled coordinates of all weights now, one flat tensor; None if there is nothing to sample."""
        return self.layout.take(self.views) if self.sampled else None


def memory(device: torch.device) -> int:
    """Bytes allocated on the device, or the peak resident memory of the process on a CPU."""
    if device.type == "cuda":
        return int(torch.cuda.memory_allocated(device))
    try:
        import resource
    except ImportError:  # not on Windows
        return -1
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
