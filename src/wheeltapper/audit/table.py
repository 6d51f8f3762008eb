"""The table of what a run will really do, each line with how it is known."""

from __future__ import annotations

import math

from wheeltapper.audit.length import Length
from wheeltapper.audit.model import Row
from wheeltapper.settings.knobs import Knobs
from wheeltapper.simulate.ema import half_life
from wheeltapper.simulate.plan import Plan


def rows_of(knobs: Knobs, length: Length, plan: Plan | None) -> list[Row]:
    rows: list[Row] = []
    batch = length.effective_batch
    if batch is not None and length.batch is not None:
        parts = f"{length.batch:g} per device"
        if length.accumulation > 1:
            parts += f" x {length.accumulation:g} accumulated"
        if length.world > 1:
            parts += f" x {length.world:g} processes"
        if length.declared_accumulation:
            declared = batch * length.declared_accumulation
            parts += f"; declared {declared:g}, but the accumulation over {length.declared_accumulation:g} is not done"
        rows.append(_row(knobs, "effective batch", f"{batch:g}", parts, "batch.per_device"))
    elif knobs.value("batch.per_device"):
        how = "per device or in all: the name does not say"
        rows.append(_row(knobs, "batch", f"{knobs.value('batch.per_device'):g}", how, "batch.per_device"))
    if length.steps_per_epoch is not None:
        rows.append(Row("updates per epoch", f"{length.steps_per_epoch:,.0f}", length.how))
    if length.total is not None:
        how = (
            f"{length.epochs:g} epochs"
            if length.epochs is not None and length.steps_per_epoch is not None
            else "declared"
        )
        rows.append(_row(knobs, "updates in all", f"{length.total:,.0f}", how, "run.total_steps"))
    rows += _optimizer(knobs)
    if plan is not None:
        rows += _schedule(plan)
    for label, knob in (
        ("warm-up", "schedule.warmup"),
        ("milestones", "schedule.milestones"),
        ("curriculum", "curriculum.steps"),
    ):
        rows += _in_updates(knobs, length, label, knob)
    rows += _average(knobs, length)
    for label, knob in (("precision", "precision"), ("clipping", "clip.norm"), ("seed", "run.seed")):
        value = knobs.get(knob)
        if value is not None and value.value is not None:
            how = "the framework's default" if value.default else "set"
            if knob == "precision" and value.value == "bf16" and knobs.value("amp.scaler") is False:
                how += "; no loss scaler: a scale that is logged is 1"
            rows.append(_row(knobs, label, f"{value.value}", how, knob))
    workers = knobs.value("data.workers")
    if isinstance(workers, (int, float)) and workers > 0 and length.world > 1:
        how = f"per process, {workers * length.world:g} over {length.world:g} processes"
        rows.append(_row(knobs, "loader workers", f"{workers:g}", how, "data.workers"))
    for label, knob in (("evaluated every", "eval.every"), ("saved every", "checkpoint.every")):
        rows += _in_updates(knobs, length, label, knob)
    return rows


def _row(knobs: Knobs, label: str, value: str, how: str, knob: str) -> Row:
    known = knobs.get(knob)
    return Row(label, value, how, knobs.place(knob) if known is not None and known.leaf is not None else None)


def _optimizer(knobs: Knobs) -> list[Row]:
    rows = []
    name, rate = knobs.value("optimizer.name"), knobs.value("optimizer.lr")
    if name:
        rows.append(_row(knobs, "optimizer", str(name), "set", "optimizer.name"))
    if isinstance(rate, (int, float)):
        rows.append(_row(knobs, "learning rate", f"{rate:g}", "nominal peak", "optimizer.lr"))
    decay = knobs.value("optimizer.weight_decay")
    if isinstance(decay, (int, float)):
        rows.append(_row(knobs, "weight decay", f"{decay:g}", "set", "optimizer.weight_decay"))
    return rows


def _schedule(plan: Plan) -> list[Row]:
    values = plan.lr()
    # Some loops set the warm-up's rate after the scheduler, from the first update on: tick 0 is never used.
    first = float(values[1] if plan.n and plan.first("warmup_end") and values[1] < values[0] else values[0])
    last = float(values[-1])
    end = "the run dies before its end" if math.isnan(last) else f"ends at {last:.3g}"
    rows = [Row("schedule", plan.name, f"from {first:.3g}, peak {plan.peak:.3g}, {end}")]
    if plan.momentum is not None:
        low, high = float(plan.momentum.min()), float(plan.momentum.max())
        rows.append(Row("momentum", f"{low:g} to {high:g}", "driven by the schedule, whatever the optimizer was given"))
    return rows


def _in_updates(knobs: Knobs, length: Length, label: str, knob: str) -> list[Row]:
    value = knobs.get(knob)
    if value is None or value.value in (None, False, []):
        return []
    items = value.value if isinstance(value.value, list) else [value.value]
    numbers = [float(v) for v in items if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if not numbers or max(numbers) <= 0:
        return []
    written = ", ".join(f"{v:g}" for v in numbers) + f" {(value.unit or 'steps').replace('_', '-')}"
    updates = [length.updates(v, value.unit) for v in numbers]
    if value.unit in (None, "steps") or any(u is None for u in updates):
        return [_row(knobs, label, written, "default" if value.default else "set", knob)]
    shown = ", ".join(f"{u:,.0f}" for u in updates if u is not None)
    return [_row(knobs, label, f"{shown} updates", f"{written} as written", knob)]


def _average(knobs: Knobs, length: Length) -> list[Row]:
    decay = knobs.value("ema.decay")
    if not isinstance(decay, (int, float)) or not 0 < decay < 1:
        return []
    every = knobs.value("ema.every") or 1
    horizon = every / (1 - decay)
    share = f", {horizon / length.total:.0%} of the run" if length.total else ""
    return [
        _row(
            knobs,
            "average of weights",
            f"decay {decay:g}",
            f"horizon {horizon:,.0f} updates{share}; half-life {half_life(float(decay), int(every)):,.0f}",
            "ema.decay",
        )
    ]
