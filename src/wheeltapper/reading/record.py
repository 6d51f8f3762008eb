"""What a reader may emit. Readers report what a file says; they never judge and never rename.

A reader returns one `Reading` per run it found in a file. Numbers travel in columns (`Points`), not one
object per value: a million scalars must cost megabytes, not gigabytes. `Rows` builds columns from a log
that is written row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wheeltapper.settings.tree import ConfigTree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The clocks a log may count by. They are never mixed without a stated conversion (run/clock.py).
ClockName = Literal["step", "micro_step", "epoch", "sample", "token", "second", "row"]
CLOCKS: tuple[ClockName, ...] = ("step", "micro_step", "epoch", "sample", "token", "second", "row")

# How one logged value came about: one batch; the mean over the logging window; the mean of an epoch; a
# running mean since the start of the epoch (or an exponential one); an evaluation over a set.
Window = Literal["batch", "window", "epoch", "running", "eval"]

EventKind = Literal[
    "start",  # a launch begins (banner, configuration print)
    "resume",  # the log says it resumes from a checkpoint
    "end",  # the log says that training finished
    "crash",  # traceback, fatal error, killed
    "oom",
    "warning",
    "overflow",  # a step skipped by the loss scaler
    "nan",  # the log says in words that something is not finite
    "checkpoint",
    "stage",  # curriculum, resolution, phase change announced in the log
    "message",  # anything else worth showing
]


@dataclass(frozen=True, slots=True)
class Points:
    """One series as one file tells it, in file order. `lines` are line numbers (text) or record numbers."""

    name: str  # exactly as the file spells it
    values: Floats
    at: Floats  # positions on `clock`
    clock: ClockName
    file: str
    lines: Ints
    clocks: Mapping[ClockName, Floats] = field(default_factory=dict)  # other positions on the same rows
    unit: str | None = None  # only if the file states it: "%", "dB", "bpc", "ms", "GB"
    split: str | None = None  # only if the format states it: "train" | "val" | "test"
    about: str | None = None  # data set, environment or group the value belongs to
    window: Window | None = None
    rank: int | None = None
    woven: bool = False  # its rows stand between those of other files, counted together with them

    def __post_init__(self) -> None:
        n = len(self.values)
        if len(self.at) != n or len(self.lines) != n or any(len(c) != n for c in self.clocks.values()):
            raise ValueError(f"Points {self.name!r}: columns of different length")
        for column in (self.values, self.at, self.lines, *self.clocks.values()):
            column.flags.writeable = False


@dataclass(frozen=True, slots=True)
class Event:
    """Something the log says in words, at a line."""

    kind: EventKind
    text: str  # at most a few lines, as written
    file: str
    line: int
    at: float | None = None  # position on `clock`, where the surrounding lines tell it
    clock: ClockName | None = None
    count: int = 1  # the same message repeated: counted, not stored again


@dataclass(frozen=True, slots=True)
class Fact:
    """A scalar known about the run, with how it is known."""

    name: str  # canonical: world_size, steps_per_epoch, total_steps, total_epochs, n_params, n_classes, ...
    value: Any
    source: str  # "train.log:12" or a derivation in words
    derived: bool = False


@dataclass(frozen=True, slots=True)
class Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on disk (`exists`), or one that a log says was written."""

    path: str
    step: float | None = None
    epoch: float | None = None
    kinds: tuple[str, ...] = ()  # raw | ema | optimizer | scheduler | scaler | rng | config
    size: int | None = None
    exists: bool = True
    tensors: tuple[Tensor, ...] = ()
    keys: tuple[str, ...] = ()  # top-level entries
    metric: tuple[str, float] | None = None  # a score stored in the file or its name
    note: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)  # plain scalars found inside


@dataclass(frozen=True, slots=True)
class Note:
    """What was not understood, repaired or left out, and why. `level`: info | repaired | lost."""

    text: str
    file: str
    line: int | None = None
    level: Literal["info", "repaired", "lost"] = "info"


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything one file told about one run."""

    file: str
    format: str  # "HF trainer_state.json", "TensorBoard events", ...
    points: tuple[Points, ...] = ()
    configs: tuple[ConfigTree, ...] = ()
    facts: tuple[Fact, ...] = ()
    events: tuple[Event, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    notes: tuple[Note, ...] = ()
    key: str | None = None  # names the run, where one file or folder holds several (MLflow, trackio)


class Rows:
    """Collects a row-by-row log into Points: one column per name, holes simply absent.

    >>> rows = Rows("log.txt", clock="epoch")
    >>> rows.add(1, 0, {"loss": 2.0}); rows.add(2, 1, {"loss": 1.5, "acc": 0.4})
    >>> [(p.name, p.at.tolist(), p.values.tolist()) for p in rows.points()]
    [('loss', [0.0, 1.0], [2.0, 1.5]), ('acc', [1.0], [0.4])]
    """

    def __init__(self, file: str, clock: ClockName) -> None:
        self.file = file
        self.clock: ClockName = clock
        self._columns: dict[tuple[Any, ...], _Column] = {}

    def add(
        self,
        line: int,
        at: float,
        values: Mapping[str, float] | Iterable[tuple[str, float]],
        clocks: Mapping[ClockName, float] | None = None,
        *,
        clock: ClockName | None = None,
        split: str | None = None,
        about: str | None = None,
        window: Window | None = None,
        units: Mapping[str, str] | None = None,
        rank: int | None = None,
    ) -> None:
        """One row: its line, its position and what it says. `clock` overrides the table's own."""
        on = clock or self.clock
        items = values.items() if isinstance(values, Mapping) else values
        for name, value in items:
            key = (name, split, about, on, rank)
            column = self._columns.get(key)
            if column is None:
                column = self._columns[key] = _Column(window, units.get(name) if units else None)
            column.at.append(at)
            column.values.append(value)
            column.lines.append(line)
            if clocks:
                for other, position in clocks.items():
                    track = column.clocks.setdefault(other, [])
                    track.extend([np.nan] * (len(column.at) - 1 - len(track)))
                    track.append(position)

    def points(self) -> tuple[Points, ...]:
        out = []
        for (name, split, about, clock, rank), column in self._columns.items():
            n = len(column.at)
            clocks = {
                other: np.asarray(track + [np.nan] * (n - len(track)), dtype=np.float64)
                for other, track in column.clocks.items()
            }
            out.append(
                Points(
                    name=name,
                    values=np.asarray(column.values, dtype=np.float64),
                    at=np.asarray(column.at, dtype=np.float64),
                    clock=clock,
                    file=self.file,
                    lines=np.asarray(column.lines, dtype=np.int64),
                    clocks=clocks,
                    unit=column.unit,
                    split=split,
                    about=about,
                    window=column.window,
                    rank=rank,
                )
            )
        return tuple(out)


class _Column:
    __slots__ = ("at", "clocks", "lines", "unit", "values", "window")

    def __init__(self, window: Window | None, unit: str | None) -> None:
        self.at: list[float] = []
        self.values: list[float] = []
        self.lines: list[int] = []
        self.clocks: dict[ClockName, list[float]] = {}
        self.window = window
        self.unit = unit
