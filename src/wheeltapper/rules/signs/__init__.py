"""Signs: ONE FILE = ONE SIGN. A sign is an observed pattern with its statistics and interval.

A sign is a module in this folder with

    \"\"\"Title, then the sections: What it sees / Why it matters / How it decides / When it is wrong / References.\"\"\"
    ID = "diverged"                       # kebab-case; names the defect, never the cure
    LIVE = True                           # may be asked while the run grows
    def look(train_loss, ...) -> Answer or a list of Findings     # parameters name study
    CASES = {"finding": {...}, "clear": {...}, "unknown": {...}}  # series by name; all three answers

A parameter with a default is optional: it is None where its signal is absent. Any other absent signal
makes the engine answer Unknown with the reason, so a sign never sees one.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from wheeltapper.errors import ContractError
from wheeltapper.finding import Answer, Clear, Finding, Grade, Place, Severity
from wheeltapper.run.model import Series
from wheeltapper.study import Absent, Study, unknown_from

SECTIONS = ("What it sees", "Why it matters", "How it decides", "When it is wrong", "References")


@dataclass(frozen=True, slots=True)
class Sign:
    """A pattern that can be looked for in a run."""

    id: str
    title: str
    page: str
    live: bool
    look: Callable[..., Answer | list[Finding]]
    cases: Mapping[str, Any]
    decides: bool = False  # an ill finding of it is the loss of the run, whatever else is seen


def _load(name: str) -> Sign:
    module = importlib.import_module(f"{__name__}.{name}")
    for needed in ("ID", "LIVE", "CASES", "look"):
        if not hasattr(module, needed):
            raise ContractError(f"the sign signs/{name}.py has no `{needed}`")
    if name.replace("_", "-") != module.ID:
        raise ContractError(f"signs/{name}.py calls itself {module.ID!r}; the file and the id must agree")
    page = inspect.cleandoc(module.__doc__ or module.ID)
    return Sign(module.ID, page.splitlines()[0].rstrip("."), page, module.LIVE, module.look, module.CASES, getattr(module, "DECIDES", False))


@cache
def signs() -> tuple[Sign, ...]:
    """Every sign, in name order."""
    return tuple(_load(info.name) for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))


@cache
def deciding() -> frozenset[str]:
    """Signs whose ill finding is the loss of the run."""
    return frozenset(sign.id for sign in signs() if sign.decides)


def ask(sign: Sign, study: Study) -> list[Answer]:
    """The answers of one sign on one run; never empty."""
    try:
        answer: Any = study.call(sign.look)
    except Absent as absent:
        return [unknown_from(absent)]
    if isinstance(answer, list):
        return answer or [Clear()]
    return [answer]


def seen(
    sign_id: str,
    series: Series,
    summary: str,
    *,
    severity: Severity,
    grade: Grade,
    onset: int | None = None,
    end: int | None = None,
    p: float | None = None,
    extra: tuple[Place, ...] = (),
    **numbers: float,
) -> Finding:
    """A Finding about a series: positions, epochs and places follow from the index of its onset."""
    epochs = series.on("epoch")
    epoch = None
    if onset is not None and epochs is not None and np.isfinite(epochs[onset]):
        epoch = float(epochs[onset])
    return Finding(
        id=sign_id,
        summary=summary,
        severity=severity,
        grade=grade,
        series=series.name,
        clock=series.clock,
        onset=None if onset is None else float(series.at[onset]),
        end=None if end is None else float(series.at[end]),
        onset_epoch=epoch,
        p=p,
        numbers={name: float(value) for name, value in numbers.items()},
        places=(*(() if onset is None else (series.place(onset),)), *extra),
    )


def share(value: float) -> str:
    """A share in words: percent, and times from tenfold on.

    >>> share(0.33), share(3.1e24)
    ('33%', '3.1e+24 times')
    """
    return f"{value:.0%}" if abs(value) < 10 else f"{value:.2g} times"


def last_words(text: str, most: int = 160) -> str:
    """The last line that a program printed, cut between words where it is long.

    >>> last_words("Traceback\\n  ...\\nRuntimeError: no more memory", 24)
    'RuntimeError: no more …'
    """
    line = (text.strip().splitlines() or [""])[-1]
    return line if len(line) <= most else f"{line[: most - 2].rsplit(' ', 1)[0]} …"


def where(series: Series, index: int) -> str:
    """A position in words: "step 4000 (epoch 3.2)"."""
    text = f"{series.clock.replace('_', '-')} {series.at[index]:,.10g}"
    epochs = series.clocks.get("epoch")
    if series.clock != "epoch" and epochs is not None and np.isfinite(epochs[index]):
        text += f" (epoch {epochs[index]:.4g})"
    return text
