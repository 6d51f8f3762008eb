"""What the tests of causes build: small runs of one illness each, and the case that a cause looks at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wheeltapper.finding import Finding
from wheeltapper.rules.causes import Case, cause, remedies_of
from wheeltapper.rules.signs import ask, signs
from wheeltapper.run.model import Run
from wheeltapper.study import Study

RNG = np.random.default_rng(7)
NOISE = RNG.standard_normal(5000)


def case_of(run: Run, extra: Sequence[Finding] = (), audit: Sequence[Finding] = ()) -> Case:
    study = Study(run)
    found = [a for sign in signs() for a in ask(sign, study) if isinstance(a, Finding)]
    return Case(study, (*found, *extra), tuple(audit))


def edits_of(cause_id: str, case: Case) -> dict[str, tuple[Any, Any]]:
    """Old and new values by knob, of all remedies of a cause."""
    known = cause(cause_id)
    assert known is not None
    return {e.knob: (e.old, e.new) for remedy in remedies_of(known, case) for e in remedy.edits}


def falling(n: int, start: float = 2.5, end: float = 0.5, noise: float = 0.02) -> np.ndarray[Any, Any]:
    return end + (start - end) * np.exp(-4 * np.arange(n) / n) + noise * NOISE[:n]


def flat(n: int, level: float, noise: float = 0.004) -> list[float]:
    return [float(v) for v in level + noise * NOISE[:n]]


def at_chance(classes: int, n: int = 40) -> dict[str, list[float]]:
    loss = math.log(classes)
    return {"train/loss": flat(n, loss), "val/loss": flat(n, loss, 1e-3), "val/accuracy": flat(n, 1 / classes, 2e-4)}
