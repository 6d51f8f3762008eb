"""Observations: ONE FILE = ONE NUMBER about a run, with its page. It decides nothing; the judge weighs it.

A module in this folder has

    \"\"\"Title, then the sections: Definition / Derivation / Healthy band / When it misleads.\"\"\"
    ABOUT = "learning"            # or evaluation, efficiency, crash: what kind of trouble it tells of
    EDGES = (0.1, 0.5)            # cut the number into states; bits are fitted for each state
    BAND = (0.1, 0.5)             # where healthy runs lie; None on a side that is open
    def observe(train_curve, ...) -> Reading | Unknown       # parameters name parts of the study
    GROUP = "improvement"         # optional: numbers of one group say the same thing, and only the strongest counts
    SETTING = True                # optional: a number of the settings; alone it never makes a run ill
    NEEDED = True                 # optional: a run in the lowest state has learned nothing, and is never sound
    LIVE = False                  # optional: it speaks of the end, and is not asked while the run grows

Most numbers are without dimension, so that they mean the same in every framework, task and size. A part of the study
that is absent makes the observation Unknown with the reason.
"""

from __future__ import annotations

import bisect
import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from wheeltapper.errors import ContractError
from wheeltapper.finding import Place, Unknown

About = Literal["learning", "evaluation", "efficiency", "crash"]
SECTIONS = ("Definition", "Derivation", "Healthy band", "When it misleads")


@dataclass(frozen=True, slots=True)
class Reading:
    """A number with the sentence that says it, its uncertainty, and where it can be checked."""

    value: float
    text: str
    sigma: float = 0.0
    series: str | None = None
    clock: str | None = None
    onset: float | None = None
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """One number that can be asked of a study."""

    id: str
    title: str
    page: str
    about: About
    edges: tuple[float, ...]
    band: tuple[float | None, float | None]
    observe: Callable[..., Reading | Unknown]
    live: bool = True  # may be asked while the run grows
    setting: bool = False  # of the settings, not of what came of them: alone it never makes a run ill
    group: str = ""  # numbers of one group say the same thing: only the strongest of them counts
    needed: bool = False  # a run in its lowest state has learned nothing, and is never sound

    def state(self, value: float) -> int:
        """Which of the states between the edges a value is in."""
        return bisect.bisect_right(self.edges, value)

    def inside(self, state: int) -> bool:
        """Whether a state lies within the healthy band."""
        low = -math.inf if state == 0 else self.edges[state - 1]
        high = math.inf if state == len(self.edges) else self.edges[state]
        bottom = -math.inf if self.band[0] is None else self.band[0]
        top = math.inf if self.band[1] is None else self.band[1]
        return low >= bottom and high <= top

    def words(self, state: int) -> str:
        """The state as an interval."""
        if state == 0:
            return f"below {self.edges[0]:g}"
        if state == len(self.edges):
            return f"{self.edges[-1]:g} and above"
        return f"{self.edges[state - 1]:g} to {self.edges[state]:g}"


def _load(name: str) -> Observation:
    module = importlib.import_module(f"{__name__}.{name}")
    page = inspect.cleandoc(module.__doc__ or "")
    missing = [s for s in SECTIONS if f"## {s}" not in page]
    missing += [a for a in ("ABOUT", "EDGES", "BAND", "observe") if not hasattr(module, a)]
    if missing:
        raise ContractError(f"observations/{name}.py has no {', '.join(missing)}")
    edges = tuple(float(edge) for edge in module.EDGES)
    if list(edges) != sorted(set(edges)) or not edges:
        raise ContractError(f"observations/{name}.py: EDGES must rise")
    if any(b is not None and b not in edges for b in module.BAND):
        raise ContractError(f"observations/{name}.py: the ends of BAND must be EDGES")
    title = page.splitlines()[0].rstrip(".")
    live = getattr(module, "LIVE", True)
    return Observation(
        name.replace("_", "-"), title, page, module.ABOUT, edges, tuple(module.BAND), module.observe, live,
        getattr(module, "SETTING", False),
        getattr(module, "GROUP", ""), getattr(module, "NEEDED", False),
    )  # fmt: skip


@cache
def observations() -> tuple[Observation, ...]:
    """Every observation, in name order."""
    return tuple(_load(info.name) for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))


def number(value: Any) -> float | None:
    """A setting as a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
