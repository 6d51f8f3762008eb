"""A planned learning rate, and how a training loop may step, hold, shift and log it.

`values[g, t]` is the LR of group g after t ticks of the schedule: what update t (counted from 0) uses, and
what a line written after update t-1 and its scheduler step shows. A plan of n ticks has n + 1 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from wheeltapper.errors import InputError
from wheeltapper.reading.record import Floats

# A plan holds one value a tick. Settings are untrusted, and EDM's defaults at a batch of 1 ask for 150 million: two
# minutes and gigabytes. This many take two seconds, and no record at hand plans for more.
MOST_TICKS = 5_000_000
MOST_EVENTS = 1000  # restarts and milestones that are named; the values do not depend on the list

PlanUnit = Literal["steps", "micro_steps", "epochs", "samples"]
EventKind = Literal["warmup_end", "milestone", "restart", "rise", "cut", "end", "overrun"]


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """Something the schedule does at tick `at`."""

    kind: EventKind
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What the schedule will do, tick by tick, for every parameter group."""

    name: str
    values: Floats  # (groups, n + 1); NaN after an overrun: the run died there
    unit: PlanUnit = "steps"
    total: float | None = None  # the length the schedule was built for, in ticks; None: endless
    momentum: Floats | None = None  # (groups, n + 1) where the schedule drives it
    events: tuple[PlanEvent, ...] = ()
    notes: tuple[str, ...] = ()
    loose_until: float = 0.0  # before this tick the settings do not fix the plan; it is drawn, not compared

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    @property
    def groups(self) -> int:
        return int(self.values.shape[0])

    @property
    def n(self) -> int:
        """Ticks simulated."""
        return int(self.values.shape[1]) - 1

    def lr(self, group: int = 0) -> Floats:
        row: Floats = self.values[group]
        return row

    @property
    def peak(self) -> float:
        """The highest LR of group 0."""
        return float(np.nanmax(self.values[0]))

    def first(self, kind: EventKind) -> PlanEvent | None:
        return next((event for event in self.events if event.kind == kind), None)

    def with_notes(self, *notes: str) -> Plan:
        return replace(self, notes=self.notes + notes)


def _columns(plan: Plan, index: Any, scale: float, offset: float, unit: PlanUnit) -> Plan:
    moved = tuple(replace(event, at=event.at * scale + offset) for event in plan.events)
    return replace(
        plan,
        values=plan.values[:, index].copy(),
        momentum=None if plan.momentum is None else plan.momentum[:, index].copy(),
        events=tuple(event for event in moved if event.at >= 0),
        total=None if plan.total is None else plan.total * scale + offset,
        loose_until=max(0.0, plan.loose_until * scale + offset) if plan.loose_until else 0.0,
        unit=unit,
    )


def refuse_endless(ticks: float) -> None:
    """A length that cannot be drawn value by value is said so, not tried."""
    if not ticks <= MOST_TICKS:
        raise InputError(f"{ticks:,.0f} updates are more than can be drawn one by one.", do=f"At most {MOST_TICKS:,} can.")


def held(plan: Plan, ticks: int, unit: PlanUnit = "steps") -> Plan:
    """Each value held for `ticks` updates: a scheduler stepped once an epoch (Lightning's default, timm's)
    on the clock of updates, or one stepped per update on the clock of micro-steps.

    >>> held(Plan("x", np.array([[3.0, 2.0, 1.0]])), 2).lr().tolist()
    [3.0, 3.0, 2.0, 2.0, 1.0]
    """
    if ticks < 1:
        raise InputError(f"a value cannot be held for {ticks} updates.", do="Give 1 or more.")
    refuse_endless(plan.n * ticks * plan.groups)
    return _columns(plan, np.append(np.repeat(np.arange(plan.n), ticks), plan.n), ticks, 0.0, unit)


def strided(plan: Plan, k: int) -> Plan:
    """The scheduler ticks k times an update: Accelerate calls it `num_processes` times (SCH-07); a loop that
    steps it every micro-batch calls it `accumulation` times.

    >>> strided(Plan("x", np.array([[4.0, 3.0, 2.0, 1.0, 0.0]])), 2).lr().tolist()
    [4.0, 2.0, 0.0]
    """
    if k < 1:
        raise InputError(f"a scheduler cannot tick {k} times an update.", do="Give 1 or more.")
    return _columns(plan, np.arange(0, plan.n + 1, k), 1 / k, 0.0, plan.unit)


def shifted(plan: Plan, k: int) -> Plan:
    """The schedule k ticks ahead (a step taken before the first update) or, for k < 0, behind."""
    index = np.clip(np.arange(plan.n + 1 - max(k, 0)) + k, 0, plan.n)
    return _columns(plan, index, 1.0, -k, plan.unit)


def logged(plan: Plan, at: Sequence[float] | Floats, *, group: int = 0) -> Floats:
    """The plan read at ticks `at`; positions beyond the plan give NaN, between ticks the earlier value."""
    ticks = np.floor(np.asarray(at, dtype=float) + 1e-9)
    inside = (ticks >= 0) & (ticks <= plan.n)
    out = np.full(ticks.shape, np.nan)
    out[inside] = plan.values[group][ticks[inside].astype(int)]
    return out
