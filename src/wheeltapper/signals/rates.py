"""The learning rate as it went, and as it was planned."""

from __future__ import annotations

from wheeltapper.config.knobs import Knobs
from wheeltapper.finding import Unknown
from wheeltapper.run.model import Run, Series
from wheeltapper.signals import Absent, signal
from wheeltapper.simulate.compare_lr import LrMatch, compare_lr
from wheeltapper.simulate.lr_shape import LrShape, shape_of_lr
from wheeltapper.simulate.plan import Plan
from wheeltapper.simulate.plan_from_knobs import planned_lr


@signal
def lr_shape(lr: Series) -> LrShape:
    """The shape, read from the log alone."""
    good = lr.finite
    return shape_of_lr(lr.at[good], lr.values[good])


@signal
def lr_plan(run: Run, knobs: Knobs) -> Plan:
    """What the settings plan, where they determine it."""
    plan = planned_lr(knobs, run.facts, steps_per_epoch=_per_epoch(run), trees=run.configs)
    if isinstance(plan, Unknown):
        raise Absent(f"the planned learning rate is not known: {plan.why}", plan.needs)
    return plan


@signal
def lr_match(run: Run, knobs: Knobs, lr: Series, lr_plan: Plan) -> LrMatch:
    """The logged rate held against its plan, under every honest way of logging it."""
    accumulation = max(1, _count(knobs.value("batch.accumulation")) or 1)
    world = _count(run.fact("world_size")) or _count(knobs.value("world_size"))
    named = (("world size", world), ("accumulation", accumulation), ("steps per epoch", _per_epoch(run)))
    return compare_lr(
        lr_plan,
        lr.at,
        lr.values,
        lr.clock,
        steps_per_epoch=_per_epoch(run),
        accumulation=accumulation,
        factors={name: float(value) for name, value in named if value},
    )


def _per_epoch(run: Run) -> int | None:
    return _count(run.fact("steps_per_epoch"))


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1 else None
