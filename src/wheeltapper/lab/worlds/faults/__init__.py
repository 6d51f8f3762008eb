"""All faults, gathered from their tables in a fixed order."""

from __future__ import annotations

from wheeltapper.lab.worlds.faults import (
    adversarial,
    efficiency,
    feeding,
    looping,
    losses,
    optimizing,
    reinforcement,
    tuning,
)
from wheeltapper.lab.worlds.faults.table import FAULTS, LOOP, Change, Fault

TABLES = (optimizing, looping, feeding, losses, adversarial, reinforcement, tuning, efficiency)
__all__ = ["FAULTS", "LOOP", "TABLES", "Change", "Fault"]
