"""Live: an object beside the training loop that measures every step, keeps the last ones and, when told to, acts.

Needs torch and numpy only. What else the base package offers (signs, causes) is used where it is installed.
Names are loaded when asked for: an incident can be read where torch is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wheeltapper.guard.before import Preflight, preflight
    from wheeltapper.guard.core import POLICIES, Guard, Stop
    from wheeltapper.guard.record import Incident, StepRecord, TensorRecord
    from wheeltapper.guard.session import guarded

__all__ = ["POLICIES", "Guard", "Incident", "Preflight", "StepRecord", "Stop", "TensorRecord", "guarded", "preflight"]

_HOME = {
    "POLICIES": "core",
    "Guard": "core",
    "Incident": "record",
    "Preflight": "before",
    "StepRecord": "record",
    "Stop": "core",
    "TensorRecord": "record",
    "guarded": "session",
    "preflight": "before",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.util import find_spec

    from wheeltapper.errors import MissingExtra

    if find_spec("torch") is None:
        raise MissingExtra("torch", "torch", "The guard")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
