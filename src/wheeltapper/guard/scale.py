"""The loss scale of a GradScaler, read where it is: on the device, never on the host.

GradScaler keeps these things in private attributes, the same since torch 1.6; where one is missing the guard takes
the gradients as they are.
"""

from __future__ import annotations

import sys
from typing import Any

DEEP = 16  # frames between GradScaler.step and a hook of the optimizer: 3 to 6, by what has wrapped its step


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


def calling() -> Any:
    """The GradScaler in whose `step` an optimizer's hook is called; None if there is none. How one is found that the guard
    was not told of: its gradients would be taken as they are, thousands of times too large."""
    frame: Any = sys._getframe(1)
    for _ in range(DEEP):
        if frame is None:
            return None
        if frame.f_code.co_name == "step":
            found = frame.f_locals.get("self")
            if any(kind.__name__ == "GradScaler" for kind in type(found).__mro__):
                return found if value(found) is not None else None
        frame = frame.f_back
    return None
