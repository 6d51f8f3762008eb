"""Run, Series, Segment. Frozen all the way down: arrays are read-only, so a rule cannot change its input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from wheeltapper.finding import Place
from wheeltapper.reading.record import Checkpoint, ClockName, Event, Fact, Floats, Ints, Note, Window
from wheeltapper.settings.tree import ConfigTree
from wheeltapper.shown import Shown

Better = Literal["up", "down", "neither", "unknown"]
Split = Literal["train", "val", "test"]

__all__ = [
    "Better",
    "Checkpoint",
    "Event",
    "Fact",
    "Note",
    "Run",
    "Segment",
    "Series",
    "Split",
    "repeated",
    "same_values",
]


def repeated(lines: Ints, at: Floats) -> Any:
    """Where a value is followed by another of the same position on the same line: a bar that is drawn again, or a name
    that stands twice on a line."""
    return (np.diff(lines) == 0) & (np.diff(at) == 0)


SAME = 2e-5  # relative: a float32 rounds at 6e-8, a log that prints five digits at 1e-5 of its value


def same_values(a: Floats, b: Floats) -> Any:
    """Where two columns hold the same number, to the digits that a log prints; NaN is the same as NaN."""
    with np.errstate(invalid="ignore"):
        close = np.abs(a - b) <= SAME * np.maximum(np.abs(a), np.abs(b))
    return close | (np.isnan(a) & np.isnan(b)) | (a == b)


@dataclass(frozen=True, slots=True)
class Series:
    """Values over one clock, with what they mean and where each came from."""

    name: str  # canonical and unique within the run: "train/loss", "val/accuracy", "lr"
    raw: str  # as the file spelled it
    quantity: str | None  # the meaning, from run/names.py: "loss", "accuracy", "psnr", "lr", ... None: unknown
    split: Split | None
    part: str | None  # component or data set: "rpn_cls" of train/loss_rpn_cls, "CC0_Val" of a psnr
    unit: str | None
    better: Better
    clock: ClockName
    at: Floats
    values: Floats
    files: tuple[str, ...]
    file_of: Ints  # index into `files`, per point
    lines: Ints
    clocks: Mapping[ClockName, Floats] = field(default_factory=dict)
    window: Window | None = None
    rank: int | None = None
    inferred: str = ""  # why its role was inferred, where its name does not tell it

    def __post_init__(self) -> None:
        for array in (self.at, self.values, self.file_of, self.lines, *self.clocks.values()):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.values)

    @property
    def finite(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.isfinite(self.values)

    def place(self, index: int) -> Place:
        """Where the point at `index` stands in what the run left behind."""
        return Place(
            file=self.files[int(self.file_of[index])] if self.files else None,
            line=int(self.lines[index]),
            series=self.name,
            at=float(self.at[index]),
        )

    def on(self, clock: ClockName) -> Floats | None:
        """The positions of the points on `clock`, if the record tells them."""
        return self.at if clock == self.clock else self.clocks.get(clock)

    def moved(self, at: float, source: ClockName, target: ClockName) -> float | None:
        """A position on the clock `source` as one on `target`, along these rows; None where they do not tell."""
        if source == target:
            return at
        track, other = self.on(source), self.on(target)
        if track is None or other is None or not len(track):
            return None
        later = np.flatnonzero(track >= at)
        found = float(other[int(later[0]) if later.size else len(track) - 1])
        return found if np.isfinite(found) else None

    def head(self, n: int) -> Series:
        """The first n points: what a live observer had seen by then."""
        return self._cut(slice(0, n))

    def where(self, mask: np.ndarray[Any, Any]) -> Series:
        return self._cut(mask)

    def _cut(self, index: Any) -> Series:
        return replace(
            self,
            at=self.at[index].copy(),
            values=self.values[index].copy(),
            file_of=self.file_of[index].copy(),
            lines=self.lines[index].copy(),
            clocks={name: track[index].copy() for name, track in self.clocks.items()},
        )


@dataclass(frozen=True, slots=True)
class Segment:
    """One launch of the run, from `start` to `end` on `clock`."""

    index: int
    clock: ClockName
    start: float
    end: float
    kind: Literal["first", "resume", "relaunch"]  # relaunch: began again from the start
    file: str
    line: int  # the first line of the segment
    why: str  # what told us that a new launch began here
    dead_from: float | None = None  # its points from here on were overwritten by a later launch
    beside: bool = False  # another file tells of the same launch


@dataclass(frozen=True, slots=True, repr=False)
class Run(Shown):
    """Everything known about one training run."""

    name: str
    root: str
    formats: tuple[str, ...]
    series: Mapping[str, Series]
    dead: Mapping[str, tuple[Series, ...]] = field(default_factory=dict)  # overwritten branches, as evidence
    facts: Mapping[str, Fact] = field(default_factory=dict)
    configs: tuple[ConfigTree, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    events: tuple[Event, ...] = ()
    segments: tuple[Segment, ...] = ()
    notes: tuple[Note, ...] = ()
    files: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()  # training scripts and launch scripts found beside the run
    alone: bool = False  # its folder is the only one with a run in what was given

    def find(self, quantity: str, split: Split | None = None, *, whole: bool = True) -> list[Series]:
        """Series of a quantity (and split); `whole` leaves out components such as train/loss_rpn_cls."""
        return [
            s
            for s in self.series.values()
            if s.quantity == quantity and (split is None or s.split == split) and not (whole and s.part)
        ]

    def fact(self, name: str, default: Any = None) -> Any:
        known = self.facts.get(name)
        return default if known is None else known.value

    def series_named(self, name: str) -> Series | None:
        """By canonical name, else by the name the file used."""
        if name in self.series:
            return self.series[name]
        return next((s for s in self.series.values() if s.raw == name), None)
