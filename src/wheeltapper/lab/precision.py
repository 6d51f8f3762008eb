"""Half precision where there is no GPU: values really pass through float16, so they really overflow.

`through_half` rounds an activation to float16 and, in the backward pass, its gradient too: a gradient over
65504 becomes inf, one under 6e-8 becomes 0, as on the device. `scaler_for` then gives torch's own GradScaler.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def through_half(x: torch.Tensor) -> torch.Tensor:
    """Rounds to float16 on the way forward and, since a cast is differentiable, on the way back."""
    return x.half().float()


def half_hooks(model: nn.Module, kinds: tuple[type[nn.Module], ...]) -> list[Any]:
    """Round the output of every module of `kinds`, as autocast would; returns the hooks' handles."""
    return [
        module.register_forward_hook(lambda _module, _inputs, output: through_half(output))
        for module in model.modules()
        if isinstance(module, kinds)
    ]


def grads_through_half(model: nn.Module) -> None:
    """Weight gradients pass through float16 too: this is where a too large loss scale shows."""
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad = parameter.grad.half().float()


def scaler_for(device: str, enabled: bool, init_scale: float = 65536.0, growth_interval: int = 2000) -> Any:
    return torch.amp.GradScaler(device, init_scale=init_scale, growth_interval=growth_interval, enabled=enabled)
