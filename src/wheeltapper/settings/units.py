"""Lengths from one unit to another: steps, micro-steps, epochs, samples, a fraction of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Scale:
    """What one run tells about its units; None where it tells nothing."""

    steps_per_epoch: float | None = None  # optimizer updates
    total_steps: float | None = None
    accumulation: float = 1.0  # micro-steps per update
    batch: float | None = None  # samples per update

    def steps(self, unit: str) -> float | None:
        """How many optimizer updates one of `unit` is."""
        if unit == "steps":
            return 1.0
        if unit == "micro_steps":
            return 1.0 / self.accumulation
        if unit == "epochs":
            return self.steps_per_epoch
        if unit == "samples":
            return 1.0 / self.batch if self.batch else None
        return self.total_steps if unit == "fraction" else None


def convert(value: Any, unit: str, to: str, scale: Scale) -> Any:
    """A length, or a list of them, in another unit; None where the run does not tell how they relate.

    >>> convert(50, "steps", "epochs", Scale(steps_per_epoch=100)), convert([10], "epochs", "fraction", Scale())
    (0.5, None)
    """
    if unit == to:
        return value
    one, other = scale.steps(unit), scale.steps(to)
    if not one or not other:
        return None
    if isinstance(value, (list, tuple)):
        return [_scaled(item, one / other, to) for item in value]
    return _scaled(value, one / other, to)


def _scaled(value: float, factor: float, to: str) -> float:
    """Steps and samples are counted, so they come out whole; a share or a part of an epoch has four digits."""
    new = value * factor
    if to in ("steps", "micro_steps", "samples"):
        return round(new)
    short = float(f"{new:.4g}")
    return int(short) if to == "epochs" and short.is_integer() else short
