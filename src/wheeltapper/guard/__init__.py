"""Live: an object beside the training loop that measures every step, keeps the last ones and, when told to, acts.

Needs torch and numpy only. What else the base package offers (signs, causes) is used where it is installed.
"""

from __future__ import annotations

from wheeltapper.guard.core import POLICIES, Guard, Stop
from wheeltapper.guard.record import Incident, StepRecord, TensorRecord

__all__ = ["POLICIES", "Guard", "Incident", "StepRecord", "Stop", "TensorRecord"]
