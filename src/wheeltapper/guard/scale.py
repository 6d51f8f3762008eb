"""The loss scale of a GradScaler, read where it is: on the device, never on the host.

GradScaler keeps these things in private attributes, the same since torch 1.6; where one is missing the guard takes
the gradients as they are.
"""

from __future__ import annotations

from typing import Any


def value(scaler: Any) -> Any:
    """The scale on the device, None without a scaler in use."""
    return getattr(scaler, "_scale", None)


def held(scaler: Any, optimizer: Any) -> Any:
    """The scale that is in the gradients as they are now; None if they are true gradients."""
    fused = getattr(optimizer, "grad_scale", None)
    if fused is not None:
        return fused
    scale = value(scaler)
    if scale is None:
        return None
    state = getattr(scaler, "_per_optimizer_states", {}).get(id(optimizer))
    return None if state is not None and getattr(state["stage"], "name", "READY") != "READY" else scale


def mark(scaler: Any) -> Any:
    """Another object after each GradScaler.update(): how a step that the scaler skipped is told from a micro-batch."""
    return getattr(scaler, "_per_optimizer_states", None)
