"""The learning rate that a configuration plans, and the one that was logged, on one axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.judge.compare import knobs_of
from wheeltapper.reading.record import Floats
from wheeltapper.run.model import Run, Series
from wheeltapper.simulate.compare_lr import LrMatch
from wheeltapper.simulate.plan import Plan
from wheeltapper.simulate.plan_from_knobs import planned_lr
from wheeltapper.study.rates import accumulation_of, match_lr


@dataclass(frozen=True, slots=True)
class Schedule:
    """`logged_at` are the positions of the logged points in the plan's ticks; None: no common clock is known."""

    name: str
    plan: Plan | Unknown
    logged: Series | None = None
    logged_at: Floats | None = None
    match: LrMatch | None = None


def lay_out(
    config: Run, run: Run | None = None, *, steps: int | None = None, steps_per_epoch: int | None = None
) -> Schedule:
    """The plan of `config`, held against the learning rate that `run` (or the same folder) logged."""
    source = run or config
    knobs = knobs_of(config)
    facts = {**config.facts, **source.facts}
    per_epoch = steps_per_epoch or _whole(source.fact("steps_per_epoch", config.fact("steps_per_epoch")))
    plan = planned_lr(knobs, facts, n_updates=steps, steps_per_epoch=per_epoch, trees=config.configs)
    if not config.configs:
        plan = Unknown(
            "there is no configuration here, only what was logged", ("the configuration, as the first path",)
        )
    logged = max(source.find("lr"), key=len, default=None)
    if logged is None or isinstance(plan, Unknown):
        return Schedule(config.name, plan, logged)
    match = match_lr(plan, logged, knobs, _whole(source.fact("world_size")), per_epoch)
    return Schedule(config.name, plan, logged, in_ticks(plan, logged, per_epoch, accumulation_of(knobs)), match)


def in_ticks(plan: Plan, series: Series, per_epoch: int | None, accumulation: int) -> Floats | None:
    """Logged positions in ticks of the plan, where the record tells the conversion."""
    updates = {"step": 1.0, "micro_step": 1 / accumulation, "epoch": float(per_epoch) if per_epoch else None}
    here = updates.get(series.clock)
    there = {"steps": 1.0, "micro_steps": 1 / accumulation, "epochs": updates["epoch"]}.get(plan.unit)
    if series.clock == "epoch" and plan.unit == "epochs":
        return series.at
    if here is None or there is None:
        return None
    return np.asarray(series.at * here / there, dtype=np.float64)


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1 else None
