"""Lengths that a schedule is laid out for, in the unit of the run: its horizon, its cuts, its warm-up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wheeltapper.finding import Place
from wheeltapper.reading.record import Floats
from wheeltapper.settings.knobs import Knobs, KnobValue
from wheeltapper.simulate.plan import Plan
from wheeltapper.study import Absent, derived
from wheeltapper.study.length import Length, count_of


@dataclass(frozen=True, slots=True)
class Horizon:
    """The length of the schedule and of the run, both in `unit`."""

    schedule: float
    run: float
    unit: str
    key: str
    place: Place


@dataclass(frozen=True, slots=True)
class Milestones:
    at: tuple[float, ...]
    run: float
    unit: str
    place: Place


@dataclass(frozen=True, slots=True)
class WarmUp:
    updates: float
    run: float
    place: Place


def in_updates(value: float, unit: str | None, length: Length) -> float | None:
    """A setting's length in updates."""
    if unit == "epochs":
        return value * length.per_epoch if length.per_epoch else None
    if unit == "fraction":
        return value * length.updates if length.updates else None
    return value


def _spans(knob: KnobValue, length: Length) -> tuple[float, float, str] | None:
    """The setting's length and the run's, both in one unit: updates where they are known, else epochs."""
    value = count_of(knob.value)
    if value is None:
        return None
    updates = in_updates(value, knob.unit, length)
    if updates is not None and length.updates:
        return updates, length.updates, "updates"
    if knob.unit == "epochs" and length.epochs:
        return value, length.epochs, "epochs"
    return None


@derived
def horizon(knobs: Knobs, length: Length) -> Horizon:
    """How long the schedule is laid out to be."""
    for key in ("schedule.total", "schedule.t_max"):
        knob = knobs.get(key)
        if knob is None or knob.default:
            continue
        spans = _spans(knob, length)
        if spans is not None:
            name = knob.leaf.dotted if knob.leaf is not None else key
            return Horizon(spans[0], spans[1], spans[2], name, knobs.place(key))
    raise Absent("the length of the schedule or of the run is not set", ("T_max or total steps",))


@derived
def milestones(knobs: Knobs, length: Length) -> Milestones:
    """Where the rate is to be cut, in updates."""
    knob = knobs.get("schedule.milestones")
    values = [v for v in knob.value if isinstance(v, int | float) and v > 0] if knob is not None and isinstance(knob.value, list) else []
    if knob is None or not values:
        raise Absent("no cuts of the rate are set", ("milestones",))
    spots = [in_updates(float(v), knob.unit, length) for v in values]
    known = [s for s in spots if s is not None]
    if len(known) == len(values) and length.updates:
        return Milestones(tuple(known), length.updates, "updates", knobs.place(knob.id))
    if knob.unit == "epochs" and length.epochs:
        return Milestones(tuple(map(float, values)), length.epochs, "epochs", knobs.place(knob.id))
    raise Absent("the length of the run is not known", ("steps or epochs",))


@derived
def warm_up(knobs: Knobs, length: Length) -> WarmUp:
    """The warm-up that was set, in updates."""
    knob = knobs.get("schedule.warmup")
    value = None if knob is None or isinstance(knob.value, bool) else knob.value
    if knob is None or not isinstance(value, int | float) or value < 0 or not length.updates:
        raise Absent("no warm-up is set, or the length of the run is not known", ("warm-up",))
    updates = in_updates(float(value), knob.unit, length)
    if updates is None:
        raise Absent("the warm-up is set in epochs of unknown length", ("steps per epoch",))
    return WarmUp(updates, length.updates, knobs.place("schedule.warmup"))


@derived
def shape_plan(
    knobs: Knobs, length: Length, lr_plan: Plan | None = None, horizon: Horizon | None = None,
    warm_up: WarmUp | None = None,
) -> tuple[Floats, Floats]:  # fmt: skip
    """The planned rate over the share of the run. Exact where the framework's schedule is known; else the textbook form of
    a schedule that is named cosine or linear, from warm-up, peak, floor and horizon."""
    done = length.done or length.planned
    if not done:
        raise Absent("the number of updates is not known", ("steps",))
    if lr_plan is not None and lr_plan.unit == "steps" and len(lr_plan.lr()) > 2:
        curve = np.asarray(lr_plan.lr(), dtype=np.float64)
        return np.arange(len(curve)) / done, curve
    name = str(knobs.value("schedule.name") or "").lower()
    peak = count_of(knobs.value("optimizer.lr"))
    cosine, linear = "cos" in name and "restart" not in name, "linear" in name or "poly" in name
    if peak is None or not (cosine or linear):
        raise Absent("the planned rate is not known", ("the schedule",))
    floor = knobs.value("schedule.min_lr")
    low = float(floor) if isinstance(floor, int | float) and not isinstance(floor, bool) else 0.0
    warm = warm_up.updates if warm_up is not None else 0.0
    span = (horizon.schedule * done / horizon.run if horizon is not None else length.updates or done)
    step = np.linspace(0, done, 401)[1:]
    phase = np.clip((step - warm) / max(span - warm, 1.0), 0.0, 1.0)
    fall = 0.5 * (1 + np.cos(np.pi * phase)) if cosine else 1.0 - phase
    curve = np.where(step < warm, peak * step / max(warm, 1.0), low + (peak - low) * fall)
    return step / done, curve
