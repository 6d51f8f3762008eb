"""What several causes ask of the settings: numbers that can be used, lengths in one unit, the kind of optimizer."""

from __future__ import annotations

import math
from typing import Any

from wheeltapper.causes import Case

ADAPTIVE = ("adam", "lion", "lamb", "ada", "rmsprop", "radam", "sophia", "muon")


def number(value: Any) -> float | None:
    """A finite number above zero, or None: what arithmetic may be done with."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        return None
    return float(value)


def world_size(case: Case) -> float | None:
    return number(case.run.fact("world_size")) or number(case.knob("world_size"))


def adaptive(case: Case) -> bool | None:
    """Whether the optimizer divides by the size of the gradient, so that its scale does not matter; None: unknown."""
    name = case.knob("optimizer.name")
    return None if not isinstance(name, str) else any(word in name.lower() for word in ADAPTIVE)


def updates(case: Case, value: float, unit: str | None) -> float | None:
    """A length in optimizer updates, where the record tells the conversion."""
    if unit == "steps":
        return value
    if unit == "micro_steps":
        return value / (number(case.knob("batch.accumulation")) or 1.0)
    per_epoch = number(case.run.fact("steps_per_epoch"))
    return value * per_epoch if unit == "epochs" and per_epoch else None


def length_of_run(case: Case, unit: str) -> float | None:
    """The planned length of the run in "steps" or "epochs", by what it prints first, then by its settings."""
    fact, knob = ("total_epochs", "run.epochs") if unit == "epochs" else ("total_steps", "run.total_steps")
    said = number(case.run.fact(fact))
    if said is not None or case.knobs is None:
        return said
    value = number(case.knob(knob))
    if value is not None:
        return value if case.knobs[knob].unit == unit else None
    if unit == "steps":
        epochs = length_of_run(case, "epochs")
        return None if epochs is None else updates(case, epochs, "epochs")
    return None


def against_run(case: Case, knob: str) -> tuple[list[float], float, str] | None:
    """A length of the schedule (or several) and the length of the run, in one unit; None where that is not known."""
    if case.knobs is None or knob not in case.knobs:
        return None
    known = case.knobs[knob]
    values = [number(v) for v in (known.value if isinstance(known.value, list) else [known.value])]
    lengths = [v for v in values if v is not None]
    if not lengths or len(lengths) < len(values):
        return None
    if known.unit == "fraction":
        return lengths, 1.0, "of the run"
    if known.unit == "epochs" and (total := length_of_run(case, "epochs")) is not None:
        return lengths, total, "epochs"
    total = length_of_run(case, "steps")
    converted = [updates(case, v, known.unit) for v in lengths]
    steps = [v for v in converted if v is not None]
    return (steps, total, "steps") if total is not None and len(steps) == len(lengths) else None
