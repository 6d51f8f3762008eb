"""The learning rate as it went, and as it was planned."""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.reading.record import Ints
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.simulate.compare_lr import LrMatch, compare_lr
from wheeltapper.simulate.lr_shape import LrShape, shape_of_lr
from wheeltapper.simulate.plan import Plan
from wheeltapper.simulate.plan_from_knobs import planned_lr
from wheeltapper.study import Absent, derived


@derived
def lr_shape(lr: Series) -> LrShape:
    """The shape, read from the log alone."""
    index = _telling(lr)
    return shape_of_lr(lr.at[index], lr.values[index])


@derived
def lr_plan(run: Run, knobs: Knobs) -> Plan:
    """What the settings plan, where they determine it."""
    plan = planned_lr(knobs, run.facts, steps_per_epoch=_per_epoch(run), trees=run.configs)
    if isinstance(plan, Unknown):
        raise Absent(f"the planned learning rate is not known: {plan.why}", plan.needs)
    return plan


@derived
def lr_match(run: Run, knobs: Knobs, lr: Series, lr_plan: Plan) -> LrMatch:
    """The logged rate held against its plan, under every honest way of logging it."""
    return match_lr(lr_plan, lr, knobs, _count(run.fact("world_size")), _per_epoch(run))


def match_lr(plan: Plan, lr: Series, knobs: Knobs, world: int | None, per_epoch: int | None) -> LrMatch:
    """A logged rate against a plan, with the numbers whose miscount would change its pace."""
    accumulation = accumulation_of(knobs)
    world = world or _count(knobs.value("world_size"))
    named = (("world size", world), ("accumulation", accumulation), ("steps per epoch", per_epoch))
    return compare_lr(
        plan,
        lr.at,
        lr.values,
        lr.clock,
        steps_per_epoch=per_epoch,
        accumulation=accumulation,
        factors={name: float(value) for name, value in named if value},
    )


def accumulation_of(knobs: Knobs) -> int:
    return max(1, _count(knobs.value("batch.accumulation")) or 1)


MOST = 20_000  # points: a curve is known from fewer, and the shape is found in time linear in them


def _telling(lr: Series) -> Ints:
    """The finite points; of very many, an even choice and both sides of every change that could be sudden."""
    good = np.flatnonzero(lr.finite)
    if len(good) <= MOST:
        return good
    x = lr.values[good]
    moved = np.flatnonzero(np.abs(np.diff(x)) > 0.04 * np.maximum(x[1:], x[:-1]))  # `_abrupt` asks for 5 %
    even = np.linspace(0, len(good) - 1, MOST).round().astype(np.int64)
    chosen = np.unique(np.concatenate([even, moved[:MOST], moved[:MOST] + 1]))
    return np.asarray(good[chosen], dtype=np.int64)


def _per_epoch(run: Run) -> int | None:
    return _count(run.fact("steps_per_epoch"))


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1 else None
