"""For tests, ours and yours: a Run from plain lists, and one sign or cause asked about it.

>>> run = make_run({"train/loss": [2.0, 1.5, float("nan"), float("nan"), float("nan")]})
>>> [type(a).__name__ for a in ask_sign("not-finite", run)]
['Finding']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from wheeltapper.finding import Answer
from wheeltapper.reading import checkpoint_file
from wheeltapper.reading.record import ClockName, Event, Fact, Points, Reading
from wheeltapper.rules.signs import ask, signs
from wheeltapper.run.merge import merge
from wheeltapper.run.model import Run
from wheeltapper.settings.parse import parse_text
from wheeltapper.study import Study


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
    checkpoints: Sequence[Path] = (),
    name: str = "made",
) -> Run:
    """A Run with the named series on one clock, and the given files of weights. Names go through the table of names, as a
    file's would."""
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
    files = [one for path in checkpoints for one in checkpoint_file.read(path)]
    return merge([reading, *files], name=name, root=".")


_SETTINGS = ("spacing", "start", "clock", "steps_per_epoch", "facts", "config", "at")


def run_of_case(case: Mapping[str, Any], folder: Path) -> Run:
    """The Run that an entry of a sign's `CASES` describes: series by name, settings of `make_run`, `events` as (kind, text,
    line), and `checkpoints` as {file name: (tensors, type)}, which are written into the folder."""
    taken = {*_SETTINGS, "expect", "events", "checkpoints"}
    return make_run(
        {name: values for name, values in case.items() if name not in taken},
        events=[Event(kind, text, "made.log", line) for kind, text, line in case.get("events", [])],
        checkpoints=[make_checkpoint(folder / name, *what) for name, what in case.get("checkpoints", {}).items()],
        **{key: case[key] for key in _SETTINGS if key in case},
    )


def make_checkpoint(path: Path, tensors: Mapping[str, NDArray[Any]], dtype: str = "F32") -> Path:
    """A safetensors file of these numbers, as F32, F16 or BF16 (cut off, not rounded)."""
    header: dict[str, Any] = {}
    body = b""
    for name, values in tensors.items():
        if dtype == "BF16":
            raw = (np.asarray(values, np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
        else:
            raw = np.asarray(values, "<f2" if dtype == "F16" else "<f4").tobytes()
        header[name] = {"dtype": dtype, "shape": np.shape(values), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    head = msgspec.json.encode(header)
    path.write_bytes(len(head).to_bytes(8, "little") + head + body)
    return path


def ask_sign(sign_id: str, run: Run) -> list[Answer]:
    """What one sign says about a run."""
    for sign in signs():
        if sign_id == sign.id:
            return ask(sign, Study(run))
    raise KeyError(f"there is no sign {sign_id!r}; there are: {', '.join(s.id for s in signs())}")
