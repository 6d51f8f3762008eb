"""The loss rises after each warm restart, by design.

## What happens
A schedule with restarts or cycles puts the rate back to its peak. The loss rises at once and falls again as the
rate decays.

## How it shows
The logged rate jumps back up after a finished decay, several times, or climbs and falls in cycles.

## What else looks like this
A cosine past its end (it climbs slowly, once), a resume that starts the schedule anew (at a resume).

## When this is wrong
The settings plan no restarts.

## Fix
Nothing to mend.

## Trial
None needed.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- Loshchilov and Hutter 2017, SGDR (arXiv:1608.03983).
"""

from __future__ import annotations

from wheeltapper.rules.causes import Case
from wheeltapper.simulate.lr_shape import LrShape

ID = "normal-warm-restarts"
AREA = "schedule"
NORMAL = True


def expect(case: Case) -> str:
    shape: LrShape | None = case.get("lr_shape")
    if shape is None or any(s.kind == "resume" for s in case.run.segments):
        return ""
    if len(shape.restarts) >= 2 or (shape.restarts and _planned(case)):
        spots = ", ".join(f"{jump.at:g}" for jump in shape.restarts[:4])
        return f"a rise of the loss is expected after each restart of the learning rate (at {spots})"
    if shape.kind == "cyclic":
        return "ups and downs of the loss are expected to follow the cycles of the learning rate"
    return ""


def _planned(case: Case) -> bool:
    name = str(case.knob("schedule.name") or "").lower()
    return any(word in name for word in ("restart", "cycl", "sgdr")) or (case.knob("schedule.cycles") or 0) > 1
