"""For tests, ours and yours: a Run from plain lists, and one sign or cause asked about it.

>>> run = make_run({"train/loss": [2.0, 1.5, float("nan"), float("nan"), float("nan")]})
>>> [type(a).__name__ for a in ask_sign("not-finite", run)]
['Finding']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wheeltapper.config.parse import parse_text
from wheeltapper.finding import Answer
from wheeltapper.run.merge import merge
from wheeltapper.run.model import Run
from wheeltapper.signals import Signals
from wheeltapper.signs import ask, signs
from wheeltapper.sources.record import ClockName, Event, Fact, Points, Reading


def make_run(
    series: Mapping[str, Sequence[float]],
    *,
    spacing: float = 1.0,
    start: float = 0.0,
    clock: ClockName = "step",
    steps_per_epoch: float | None = None,
    config: str | None = None,
    facts: Mapping[str, Any] | None = None,
    events: Sequence[Event] = (),
    at: Sequence[float] | None = None,
    name: str = "made",
) -> Run:
    """A Run with the named series on one clock. Names go through the table of names, as a file's would."""
    points = []
    for raw, values in series.items():
        spots = start + spacing * np.arange(len(values), dtype=np.float64)
        if at is not None:
            spots = np.asarray(at, dtype=np.float64)
        clocks: dict[ClockName, Any] = {}
        if steps_per_epoch and clock == "step":
            clocks["epoch"] = spots / steps_per_epoch
        points.append(
            Points(
                name=raw,
                values=np.asarray(values, dtype=np.float64),
                at=spots,
                clock=clock,
                file="made.log",
                lines=np.arange(1, len(values) + 1, dtype=np.int64),
                clocks=clocks,
            )
        )
    trees = (parse_text(config, "made.yaml", "yaml"),) if config else ()
    known = tuple(Fact(key, value, "given") for key, value in (facts or {}).items())
    reading = Reading("made.log", "made", points=tuple(points), configs=trees, facts=known, events=tuple(events))
    return merge([reading], name=name, root=".")


def ask_sign(sign_id: str, run: Run) -> list[Answer]:
    """What one sign says about a run."""
    for sign in signs():
        if sign_id == sign.ID:
            return ask(sign, Signals(run))
    raise KeyError(f"there is no sign {sign_id!r}; there are: {', '.join(s.ID for s in signs())}")
