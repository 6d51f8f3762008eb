"""What the modules put out, on request: RMS, zeros, saturation and what is not finite, at the looks only.

Forward hooks are put on right before a step that is looked at and taken off after it, so that all other steps run as
without them. Of several forward passes in the step (accumulation) the last one counts; passes without gradients
(evaluation between the steps, the first pass of checkpointing) do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

import torch

from wheeltapper.errors import InputError
from wheeltapper.guard.sample import local
from wheeltapper.guard.snapshot import unwrapped

MOST = 512  # modules: each costs a dozen launches at a look
# Where the slope of a squashing function has fallen to about a hundredth of its largest: tanh' = 1 − y², σ' = y(1 − y).
SATURATED = {"Tanh": (-0.995, 0.995), "Sigmoid": (0.0025, 0.9975), "Hardtanh": None, "Hardsigmoid": (0.0, 1.0)}


def compiled(model: Any) -> bool:
    """Whether torch.compile runs the model: hooks put on later are not seen by it."""
    return any(hasattr(m, "_orig_mod") or getattr(m, "_compiled_call_impl", None) is not None for m in model.modules())


def chosen(model: Any, wanted: bool | str | Iterable[str]) -> dict[str, Any]:
    """Name -> module: all that have no modules inside, or those named (also by patterns such as "blocks.*.attn")."""
    named = dict(unwrapped(model).named_modules())
    if wanted is True:
        return {n: m for n, m in list(named.items()) if not any(True for _ in m.children())}
    patterns = [wanted] if isinstance(wanted, str) else list(wanted or ())
    found: dict[str, Any] = {}
    for pattern in patterns:
        fits = {n: m for n, m in named.items() if fnmatchcase(n, pattern)}
        if not fits:
            raise InputError(
                f"activations: the model has no module {pattern!r}",
                do=f"Its modules are named like: {', '.join([n for n in named if n][:6])}",
            )
        found |= fits
    return found


class Activations:
    """Hooks on some modules and what they saw last."""

    def __init__(self, modules: dict[str, Any]) -> None:
        self.modules = dict(list(modules.items())[:MOST])
        self.kinds = {n: type(m).__name__ for n, m in self.modules.items()}
        self._hooks: list[Any] = []
        self._seen: dict[str, Any] = {}
        self.failed: Exception | None = None

    def attach(self) -> None:
        if not self._hooks:
            self._seen = {}
            self._hooks = [m.register_forward_hook(self._hook_for(n)) for n, m in self.modules.items()]

    def detach(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def taken(self) -> dict[str, Any]:
        """Name -> four numbers on the device, in the order of the forward pass."""
        seen, self._seen = self._seen, {}
        return seen

    def _hook_for(self, name: str) -> Any:
        limits = SATURATED.get(self.kinds[name], ())

        def hook(module: Any, _args: Any, out: Any) -> None:
            if self.failed is not None or not torch.is_grad_enabled() or torch.compiler.is_compiling():
                return
            try:
                with torch.no_grad():
                    found = numbers(out, (module.min_val, module.max_val) if limits is None else limits)
                if found is not None:
                    self._seen.pop(name, None)
                    self._seen[name] = found
            except Exception as error:  # training goes on; the guard tells
                self.failed = error

        return hook


def numbers(out: Any, limits: tuple[float, ...]) -> Any:
    """RMS, share of zeros, share beyond the limits (nan without), count of what is not finite."""
    while isinstance(out, list | tuple) and out:
        out = out[0]
    if not isinstance(out, torch.Tensor) or not out.is_floating_point() or out.numel() == 0 or out.is_sparse:
        return None
    x = local(out.detach())
    size = x.numel()
    rms = torch.linalg.vector_norm(x, dtype=torch.promote_types(x.dtype, torch.float32)).float() / size**0.5
    zeros = (x == 0).sum().float() / size
    beyond = ((x <= limits[0]) | (x >= limits[1])).sum().float() / size if limits else torch.full_like(zeros, torch.nan)
    return torch.stack([rms, zeros, beyond, (~torch.isfinite(x)).sum().float()])
