"""What a review looks things up in: the run, its diagnosis, its settings and what they really do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from wheeltapper.audit.model import AuditReport
from wheeltapper.finding import Finding, Place
from wheeltapper.judge.model import Diagnosis
from wheeltapper.review.model import ClaimClock
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.dialects.schema import place_of
from wheeltapper.settings.knobs import Knobs, read_knobs
from wheeltapper.settings.parse import configs_among
from wheeltapper.settings.tree import ConfigTree, Leaf
from wheeltapper.settings.vocabulary import meaning_of_path


@dataclass(frozen=True)
class Record:
    """One run with all that is known about it."""

    diagnosis: Diagnosis
    audit: AuditReport
    extra: tuple[ConfigTree, ...] = ()  # configs that were named beside the run

    @property
    def run(self) -> Run:
        return self.diagnosis.run

    @cached_property
    def trees(self) -> tuple[ConfigTree, ...]:
        """What set the run: its configs, and scripts that are configs."""
        return (*self.run.configs, *configs_among(self.run.scripts), *self.extra)

    @cached_property
    def knobs(self) -> Knobs:
        return read_knobs(self.trees, run_formats=self.run.formats)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(leaf for tree in self.trees for leaf in tree.leaves)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Of the curves, the settings and the code, each once."""
        return tuple({(f.id, f.summary): f for f in (*self.diagnosis.findings, *self.audit.findings)}.values())

    def found(self, *ids: str) -> Finding | None:
        return next((f for f in self.findings if f.id in ids), None)

    def row(self, label: str) -> str | None:
        """A line of the audit's table: what the run really does."""
        return next((f"{row.value} ({row.how})" for row in self.audit.rows if row.label == label), None)

    # -- settings --------------------------------------------------------------------------------------

    def leaves_named(self, name: str) -> list[Leaf]:
        """The settings that a key or a dotted path means, by its end; underscores, dashes and case do not count."""
        want = _plain(name)
        exact = [leaf for leaf in self.leaves if _plain(leaf.dotted) == want]
        if exact:
            return exact
        parts = want.split(".")
        return [leaf for leaf in self.leaves if _names(leaf)[-len(parts) :] == parts]

    def knob_of(self, name: str) -> str | None:
        """The knob that a key means, by its words."""
        if name in self.knobs:
            return name
        meant = meaning_of_path(tuple(part for part in re.split(r"[.\s]+", name.strip("-")) if part))
        return None if meant is None else meant.knob

    def value_of(self, name: str) -> tuple[Any, Place] | None:
        """What is set for a key or a knob, and where."""
        leaves = self.leaves_named(name)
        if leaves:
            items = [leaf for leaf in leaves if isinstance(leaf.path[-1], int)]
            if len(items) > 1 and len(items) == len(leaves):
                return [leaf.value for leaf in items], place_of(items[0])
            return leaves[-1].value, place_of(leaves[-1])
        lists = self.list_named(name)
        if lists:
            return [leaf.value for leaf in lists], place_of(lists[0])
        knob = self.knob_of(name)
        if knob is not None and knob in self.knobs and not self.knobs[knob].default:
            return self.knobs.value(knob), self.knobs.place(knob)
        return None

    def list_named(self, name: str) -> list[Leaf]:
        """The items of a list that a key means."""
        want = _plain(name).split(".")
        return [
            leaf
            for leaf in self.leaves
            if isinstance(leaf.path[-1], int) and [_plain(str(p)) for p in leaf.path[:-1]][-len(want) :] == want
        ]

    # -- length and time -------------------------------------------------------------------------------

    @cached_property
    def steps_per_epoch(self) -> float | None:
        told = self.run.fact("steps_per_epoch")
        return float(told) if isinstance(told, int | float) and told > 0 else None

    def reachable(self, clock: ClaimClock) -> tuple[float, str] | None:
        """The last position that the settings let this run reach on a clock, and how that is known."""
        epochs = self.knobs.value("run.epochs") or self.run.fact("total_epochs")
        each, total = self.steps_per_epoch, self.diagnosis.progress.total
        if clock == "epoch":
            return (float(epochs), f"{epochs:,g} epochs are set") if isinstance(epochs, int | float) else None
        short = self.found("run-shorter-than-declared")
        if isinstance(epochs, int | float) and each and (short is not None or self.diagnosis.progress.clock == "epoch"):
            return epochs * each, f"{epochs:,g} epochs of {each:,.0f} steps are {epochs * each:,.0f}"
        if total is not None and self.diagnosis.progress.clock == "step":
            return float(total), f"the run is {total:,.0f} steps long"
        return None

    @cached_property
    def day(self) -> str | None:
        """The day of the run as 2025-11-29: by what was logged, else by a name."""
        for series in self.run.series.values():
            seconds = series.clocks.get("second")
            if seconds is not None and len(seconds) and 1e9 < seconds[0] < 4e9:
                return datetime.fromtimestamp(float(seconds[0]), UTC).strftime("%Y-%m-%d")
        for name in self.run.files:
            match = re.search(r"(20\d\d)-?([01]\d)-?([0-3]\d)", name)
            if match:
                return "-".join(match.groups())
        return None

    def on_clock(self, series: Series, at: float, clock: ClaimClock | None) -> float | None:
        """A position of a claim on the clock of a series."""
        if clock is None or clock == series.clock or (clock == "step" and series.clock in ("step", "micro_step")):
            return at
        if clock == "epoch":
            moved = series.moved(at, "epoch", series.clock)
            if moved is None and self.steps_per_epoch:
                moved = at * self.steps_per_epoch
            return moved
        moved = series.moved(at, "step", series.clock)
        if moved is None and series.clock == "epoch" and self.steps_per_epoch:
            moved = at / self.steps_per_epoch
        return moved


def _plain(name: str) -> str:
    return name.strip().lstrip("-").lower().replace("-", "_")


def _names(leaf: Leaf) -> list[str]:
    return [_plain(str(part)) for part in leaf.path]
