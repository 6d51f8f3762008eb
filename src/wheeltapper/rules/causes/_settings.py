"""What several causes ask of the settings: numbers that can be used, lengths in one unit, the kind of optimizer."""

from __future__ import annotations

import ast
import math
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from wheeltapper.audit.length import Length, length_of
from wheeltapper.finding import Finding
from wheeltapper.program.objects import OPTIMIZERS
from wheeltapper.rules.causes import Case
from wheeltapper.settings.dialects import generic
from wheeltapper.settings.knobs import Knobs
from wheeltapper.settings.tree import Leaf

ADAPTIVE = ("adam", "lion", "lamb", "ada", "rmsprop", "radam", "sophia", "muon")


def number(value: Any) -> float | None:
    """A finite number above zero, or None: what arithmetic may be done with."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        return None
    return float(value)


def world_size(case: Case) -> float | None:
    return number(case.run.fact("world_size")) or number(case.knob("world_size"))


def adaptive(case: Case) -> bool | None:
    """Whether the optimizer divides by the size of the gradient, so that its scale does not matter; None: unknown.

    Where the settings do not name it, the script does, if all that it builds are of one kind.
    """
    name = case.knob("optimizer.name")
    names = [name] if isinstance(name, str) else [n for path in case.run.scripts for n in _built_in(path)]
    kinds = {any(word in one.lower() for word in ADAPTIVE) for one in names}
    return kinds.pop() if len(kinds) == 1 else None


def _built_in(path: str) -> tuple[str, ...]:
    """The optimizers that a script builds by their names."""
    try:
        info = os.stat(path)
    except OSError:
        return ()
    large = not path.endswith(".py") or info.st_size > 1_000_000
    return () if large else _optimizers(path, info.st_mtime_ns)


@lru_cache(maxsize=64)
def _optimizers(path: str, _changed: int) -> tuple[str, ...]:
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [
        f.attr if isinstance(f, ast.Attribute) else f.id for f in called if isinstance(f, ast.Attribute | ast.Name)
    ]
    return tuple(dict.fromkeys(name for name in names if name in OPTIMIZERS))


def plain_sgd(case: Case) -> bool:
    """SGD by its name, or by a momentum without betas."""
    unnamed = case.knob("optimizer.momentum") is not None and case.knob("optimizer.betas") is None
    return adaptive(case) is False or (adaptive(case) is None and unnamed)


# The upper ends of what Adam and SGD are run with; the middle of what the frameworks' recipes from scratch use.
HIGH_ADAPTIVE, HIGH_PLAIN = 1e-2, 0.3
USUAL_ADAPTIVE, USUAL_PLAIN = 3e-4, 0.1
# The rate times the updates of short recipes from scratch, which is how far they can go: nanoGPT's character model 1e-3
# over 5,000 (a third of it lost to warm-up and decay), DAWNBench's ResNet-9 0.4 over 2,352 (half lost). A run of a few
# hundred updates that has to learn from scratch needs the upper end of what its optimizer is run with.
FAR_ADAPTIVE, FAR_PLAIN = 3.0, 400.0


def usual_rate(case: Case) -> float:
    """The learning rate that a run of this length, from scratch, is run with."""
    plain = plain_sgd(case)
    usual, high = (USUAL_PLAIN, HIGH_PLAIN) if plain else (USUAL_ADAPTIVE, HIGH_ADAPTIVE)
    total = length_of_run(case, "steps")
    return usual if total is None else min(high, max(usual, (FAR_PLAIN if plain else FAR_ADAPTIVE) / total))


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


def _lengths(value: Any) -> list[float]:
    """A length or a list of lengths as numbers; nothing where one of them is none."""
    numbers = [number(v) for v in (value if isinstance(value, list) else [value])]
    found = [v for v in numbers if v is not None]
    return found if len(found) == len(numbers) else []


def against_run(case: Case, knob: str) -> tuple[list[float], float, str] | None:
    """A length of the schedule (or several) and the length of the run, in one unit; None where that is not known."""
    if case.knobs is None or knob not in case.knobs:
        return None
    known = case.knobs[knob]
    lengths = _lengths(known.value)
    if not lengths:
        return None
    if known.unit == "fraction":
        return lengths, 1.0, "of the run"
    if known.unit == "epochs" and (total := length_of_run(case, "epochs")) is not None:
        return lengths, total, "epochs"
    total = length_of_run(case, "steps")
    converted = [updates(case, v, known.unit) for v in lengths]
    steps = [v for v in converted if v is not None]
    return (steps, total, "steps") if total is not None and len(steps) == len(lengths) else None
