"""What several causes ask of the settings: numbers that can be used, lengths in one unit, the kind of optimizer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from wheeltapper.audit.length import Length, length_of
from wheeltapper.causes import Case
from wheeltapper.config.dialects import generic
from wheeltapper.config.knobs import Knobs
from wheeltapper.config.tree import Leaf
from wheeltapper.finding import Finding

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


def length(case: Case) -> Length:
    """How long the run is, by the one computation that the audit uses as well."""
    return length_of(case.knobs if case.knobs is not None else Knobs({}, generic), case.run.facts)


def updates(case: Case, value: float, unit: str | None) -> float | None:
    """A length in optimizer updates, where the record tells the conversion."""
    return None if unit is None else length(case).updates(value, unit)


def length_of_run(case: Case, unit: str) -> float | None:
    """The planned length of the run in "steps" (optimizer updates) or "epochs"."""
    known = length(case)
    return known.epochs if unit == "epochs" else known.total


def settings_at(case: Case, findings: Iterable[Finding]) -> list[Leaf]:
    """The settings that findings point at, by file, line and column; each key once."""
    found: dict[str, Leaf] = {}
    places = {(place.file, place.line, place.column) for one in findings for place in one.places}
    for tree in case.run.configs:
        for leaf in tree:
            if (leaf.file, leaf.line, leaf.column) in places:
                found.setdefault(leaf.dotted, leaf)
    return list(found.values())


def like(old: Any, new: float) -> float:
    """A new length in the manner of the old one: whole, and not nothing, where that is a whole number.

    >>> like(720, 3.6), like(0.5, 0.125)
    (4, 0.125)
    """
    return max(1, round(new)) if isinstance(old, int) else new


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
