"""What the tests of causes build: small runs of one illness each, and the answers about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wheeltapper.causes import Case, Excluded, causes, weighed
from wheeltapper.diagnosis.diagnose import diagnose_run
from wheeltapper.diagnosis.model import Diagnosis
from wheeltapper.finding import Evidence, Finding
from wheeltapper.run.merge import merge
from wheeltapper.run.model import Run
from wheeltapper.signals import Signals
from wheeltapper.sources.record import Fact, Points, Reading
from wheeltapper.testing import make_run

BY_ID = {cause.ID: cause for cause in causes()}
RNG = np.random.default_rng(7)
NOISE = RNG.standard_normal(5000)


def falling(n: int, start: float = 2.5, end: float = 0.5, noise: float = 0.02) -> np.ndarray[Any, Any]:
    return end + (start - end) * np.exp(-4 * np.arange(n) / n) + noise * NOISE[:n]


def broken(n: int, at: int, noise: float = 0.02) -> list[float]:
    """A loss that falls and then diverges from row `at` on."""
    x = falling(n, noise=noise)
    x[at:] = x[at - 1] + 0.08 * np.arange(1, n - at + 1)
    return [float(v) for v in x]


def flat(n: int, level: float, noise: float = 0.004) -> list[float]:
    return [float(v) for v in level + noise * NOISE[:n]]


def at_chance(classes: int, n: int = 40) -> dict[str, list[float]]:
    loss = math.log(classes)
    return {"train/loss": flat(n, loss), "val/loss": flat(n, loss, 1e-3), "val/accuracy": flat(n, 1 / classes, 2e-4)}


def declared(finding_id: str, summary: str, grade: str = "is") -> Finding:
    return Finding(finding_id, summary, "watch", grade)  # type: ignore[arg-type]


def top(diagnosis: Diagnosis, n: int = 2) -> list[str]:
    return [c.id for c in diagnosis.causes[:n]]


def named(diagnosis: Diagnosis, cause: str) -> float:
    return next((c.probability for c in diagnosis.causes if c.id == cause), 0.0)


def weigh(cause: str, run: Run, audit: Sequence[Finding] = ()) -> Excluded | tuple[Evidence, ...]:
    diagnosis = diagnose_run(run, audit=audit)
    return weighed(BY_ID[cause], Case(Signals(run), diagnosis.findings, tuple(audit)))


def made(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], config: str = "", **facts: float) -> Run:
    """A run whose series have positions of their own."""
    points = tuple(
        Points(
            name,
            np.asarray(values, dtype=np.float64),
            np.asarray(at, dtype=np.float64),
            "step",
            "made.log",
            np.arange(1, len(values) + 1, dtype=np.int64),
        )
        for name, (at, values) in series.items()
    )
    blank = make_run({}, config=config or None)
    known = tuple(Fact(name, value, "given") for name, value in facts.items())
    return merge(
        [Reading("made.log", "made", points=points, configs=blank.configs, facts=known)], name="made", root="."
    )
