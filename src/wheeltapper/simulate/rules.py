"""torch's learning-rate schedulers, one rule each, with torch's own order of floating-point operations.

torch computes most schedules *recursively* from the LR in the parameter group, so rounding, a warm-up that
overwrites the LR and a second chained scheduler all change what follows. A closed form cannot follow that;
these rules do, tick by tick (a million ticks take well under a second). Read from torch/optim/lr_scheduler.py
2.13; the tests hold them against torch itself.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wheeltapper.errors import InputError
from wheeltapper.reading.record import Floats
from wheeltapper.simulate.plan import PlanEvent

Step = Callable[[int, float, float], float]  # (tick >= 1, LR in the group, base LR) -> new LR
Start = Callable[[float, float], float]  # (LR in the group, base LR) -> new LR


def _keep(x: float, base: float) -> float:
    return x


def _base(x: float, base: float) -> float:
    return base


@dataclass(frozen=True, slots=True)
class Rule:
    """One scheduler on one parameter group.

    `start` is the constructor's first step, `step` a later one, `again` what SequentialLR gets when it
    switches to this scheduler (torch's closed form at tick 0). `initial` is the group's initial_lr and
    `own_base` the base LR, where the constructor overrides what the optimizer was given.
    """

    start: Start
    step: Step
    again: Start = _base
    initial: float | None = None
    sets_lr: float | None = None  # the constructor writes this LR into the group before its first step
    own_base: float | None = None
    momentum: Callable[[Floats], Floats] | None = None  # at many ticks at once: it is well conditioned
    limit: int | None = None  # torch raises beyond this tick
    total: float | None = None
    events: tuple[PlanEvent, ...] = ()


def need(ok: bool, what: str, do: str = "") -> None:
    if not ok:
        raise InputError(what, do=do or None)


def lambda_lr(values: Sequence[float] | Callable[[int], float]) -> Rule:
    """base · f(t), f given as a function or as its values."""
    factor = _function(values)
    return Rule(lambda x, b: b * factor(0), lambda t, x, b: b * factor(t), lambda x, b: b * factor(0))


def multiplicative_lr(values: Sequence[float] | Callable[[int], float]) -> Rule:
    """lr · f(t) from the LR before; f(0) counts only when SequentialLR switches to it."""
    factor = _function(values)
    return Rule(_keep, lambda t, x, b: x * factor(t), lambda x, b: x * factor(0))


def _function(values: Sequence[float] | Callable[[int], float]) -> Callable[[int], float]:
    if callable(values):
        return values
    return lambda t: values[t]


def step_lr(step_size: int, gamma: float = 0.1) -> Rule:
    need(step_size >= 1, f"StepLR needs step_size >= 1, not {step_size}.")
    return Rule(_keep, lambda t, x, b: x if t % step_size else x * gamma)


def multi_step_lr(milestones: Sequence[int], gamma: float = 0.1) -> Rule:
    cuts = {int(at): gamma**times for at, times in Counter(milestones).items()}
    first = cuts.get(0, 1.0)
    events = tuple(PlanEvent("milestone", at, f"LR × {cuts[at]:g} at {at}") for at in sorted(cuts))
    # bisect_right counts a milestone at 0, which is what the constructor's first step does as well.
    return Rule(
        lambda x, b: x * first,
        lambda t, x, b: x * cuts[t] if t in cuts else x,
        lambda x, b: b * gamma ** bisect_right(sorted(milestones), 0),
        events=events,
    )


def constant_lr(factor: float = 1.0 / 3, total_iters: int = 5) -> Rule:
    need(0 <= factor <= 1, f"ConstantLR needs a factor in [0, 1], not {factor:g}.")

    def step(t: int, x: float, b: float) -> float:
        return x * (1.0 / factor) if t == total_iters else x

    return Rule(
        lambda x, b: x * factor,
        step,
        lambda x, b: b * (factor + (total_iters <= 0) * (1 - factor)),
        events=(PlanEvent("warmup_end", total_iters, f"full LR from {total_iters}"),),
    )


def linear_lr(start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5) -> Rule:
    need(0 < start_factor <= 1, f"LinearLR needs a start_factor in (0, 1], not {start_factor:g}.")
    need(0 <= end_factor <= 1, f"LinearLR needs an end_factor in [0, 1], not {end_factor:g}.")
    rise = end_factor - start_factor

    def step(t: int, x: float, b: float) -> float:
        if t > total_iters:
            return x
        return x * (1.0 + rise / (total_iters * start_factor + (t - 1) * rise))

    done = PlanEvent("warmup_end" if rise > 0 else "end", total_iters, f"{end_factor:g} × LR from {total_iters}")
    return Rule(
        lambda x, b: x * start_factor,
        step,
        lambda x, b: b * start_factor,
        events=(done,),
    )


def exponential_lr(gamma: float) -> Rule:
    return Rule(_keep, lambda t, x, b: x * gamma)


def polynomial_lr(total_iters: int = 5, power: float = 1.0) -> Rule:
    need(total_iters >= 1, f"PolynomialLR needs total_iters >= 1, not {total_iters}.")

    def step(t: int, x: float, b: float) -> float:
        if t > total_iters:
            return x
        decay: float = ((1.0 - t / total_iters) / (1.0 - (t - 1) / total_iters)) ** power
        return x * decay

    return Rule(_keep, step, total=total_iters, events=(PlanEvent("end", total_iters, f"LR 0 from {total_iters}"),))


def cosine_annealing_lr(T_max: int, eta_min: float = 0.0) -> Rule:
    """Falls to eta_min at T_max, then climbs back with period 2·T_max (SCH-02)."""
    need(T_max >= 1, f"CosineAnnealingLR needs T_max >= 1, not {T_max}.")
    pi, cos = math.pi, math.cos
    lift = (1 - cos(pi / T_max)) / 2

    def step(t: int, x: float, b: float) -> float:
        if (t - 1 - T_max) % (2 * T_max) == 0:
            # torch multiplies before it divides; kept in that order.
            return x + (b - eta_min) * (1 - cos(pi / T_max)) / 2
        return (1 + cos(pi * t / T_max)) / (1 + cos(pi * (t - 1) / T_max)) * (x - eta_min) + eta_min

    return Rule(
        _keep,
        step,
        lambda x, b: eta_min + (b - eta_min) * (1 + cos(0.0)) / 2,
        total=T_max,
        events=(
            PlanEvent("end", T_max, f"lowest LR {eta_min:g} at {T_max}"),
            PlanEvent("rise", T_max + 1, f"the LR climbs again after {T_max} (by {lift:.1%} of its range first)"),
        ),
    )


def cosine_warm_restarts(T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> Rule:
    need(isinstance(T_0, int) and T_0 > 0, f"CosineAnnealingWarmRestarts needs a positive whole T_0, not {T_0}.")
    need(isinstance(T_mult, int) and T_mult >= 1, f"T_mult must be a whole number >= 1, not {T_mult}.")
    state = {"cur": 0, "length": T_0}
    pi, cos = math.pi, math.cos

    def value(b: float) -> float:
        return eta_min + (b - eta_min) * (1 + cos(pi * state["cur"] / state["length"])) / 2

    def step(t: int, x: float, b: float) -> float:
        state["cur"] += 1
        if state["cur"] >= state["length"]:
            state["cur"] %= state["length"]
            state["length"] *= T_mult
        return value(b)

    starts: list[PlanEvent] = []
    at = length = T_0
    while at < 10_000_000 and len(starts) < 64:  # enough to show; the values do not depend on this list
        starts.append(PlanEvent("restart", at, f"LR back to its base at {at}"))
        length *= T_mult
        at += length
    return Rule(lambda x, b: value(b), step, lambda x, b: value(b), events=tuple(starts))


def cyclic_lr(
    base_lr: float,
    max_lr: float,
    step_size_up: int = 2000,
    step_size_down: int | None = None,
    mode: str = "triangular",
    gamma: float = 1.0,
    cycle_momentum: bool = True,
    base_momentum: float = 0.8,
    max_momentum: float = 0.9,
) -> Rule:
    up = float(step_size_up)
    size = up + (float(step_size_down) if step_size_down is not None else up)
    ratio = up / size
    scales: dict[str, Callable[[int, int], float]] = {
        "triangular": lambda cycle, t: 1.0,
        "triangular2": lambda cycle, t: 1 / (2.0 ** (cycle - 1)),
        "exp_range": lambda cycle, t: float(gamma**t),
    }
    need(mode in scales, f"CyclicLR has no mode {mode!r}.", f"One of: {', '.join(scales)}.")
    scale = scales[mode]

    def value(t: int, start: float = base_lr, end: float = max_lr) -> float:
        cycle = math.floor(1 + t / size)
        x = 1.0 + t / size - cycle
        height = x / ratio if x <= ratio else (x - 1) / (ratio - 1)
        return start + (end - start) * height * scale(cycle, t)

    def momentum(ticks: Floats) -> Floats:
        return np.array([value(int(t), max_momentum, base_momentum) for t in ticks])

    return Rule(
        lambda x, b: value(0),
        lambda t, x, b: value(t),
        lambda x, b: value(0),
        sets_lr=base_lr,
        momentum=momentum if cycle_momentum else None,
        events=(PlanEvent("warmup_end", step_size_up, f"top of the first cycle at {step_size_up}"),),
    )


def one_cycle_lr(
    max_lr: float,
    total_steps: int | None = None,
    epochs: int | None = None,
    steps_per_epoch: int | None = None,
    pct_start: float = 0.3,
    anneal_strategy: str = "cos",
    cycle_momentum: bool = True,
    base_momentum: float = 0.85,
    max_momentum: float = 0.95,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
    three_phase: bool = False,
) -> Rule:
    """Ignores the optimizer's LR and (by default) its momentum; torch raises past total_steps (SCH-04)."""
    if total_steps is None:
        need(
            epochs is not None and steps_per_epoch is not None,
            "OneCycleLR needs total_steps, or epochs and steps_per_epoch.",
        )
        total_steps = int(epochs or 0) * int(steps_per_epoch or 0)
    need(total_steps > 0, f"OneCycleLR needs total_steps > 0, not {total_steps}.")
    need(0 <= pct_start <= 1, f"pct_start must lie in [0, 1], not {pct_start:g}.")
    need(anneal_strategy in ("cos", "linear"), f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}.")
    top = max_lr
    low = top / div_factor
    last = low / final_div_factor
    hi, lo = max_momentum, base_momentum
    peak = float(pct_start * total_steps) - 1
    ends = [peak, float(2 * pct_start * total_steps) - 2, total_steps - 1] if three_phase else [peak, total_steps - 1]
    lrs = [(low, top), (top, low), (low, last)] if three_phase else [(low, top), (top, last)]
    moms = [(hi, lo), (lo, hi), (hi, hi)] if three_phase else [(hi, lo), (lo, hi)]

    phases = list(zip([0.0, *ends], [*ends[:-1], math.inf], ends, lrs, moms, strict=False))
    linear, cos, pi = anneal_strategy == "linear", math.cos, math.pi

    def value(t: int) -> float:
        for begun, until, end, (first, final), _ in phases:
            if t <= until:
                pct = (t - begun) / (end - begun)
                if linear:
                    return (final - first) * pct + first
                return final + (first - final) / 2.0 * (cos(pi * pct) + 1)
        raise AssertionError

    def momentum(ticks: Floats) -> Floats:
        out, todo = np.empty(len(ticks)), np.ones(len(ticks), dtype=bool)
        for begun, until, end, _, (first, final) in phases:
            here = todo & (ticks <= until)
            pct = (ticks[here] - begun) / (end - begun) if end > begun else ticks[here]
            out[here] = first + (final - first) * (pct if linear else (1 - np.cos(pi * pct)) / 2)
            todo &= ~here
        return out

    return Rule(
        lambda x, b: value(0),
        lambda t, x, b: value(t),
        lambda x, b: value(0),
        initial=low,
        own_base=low,
        momentum=momentum if cycle_momentum else None,
        limit=total_steps,
        total=total_steps,
        events=(
            PlanEvent("warmup_end", peak, f"top LR {top:g} at {peak:g}"),
            PlanEvent("end", total_steps - 1, f"lowest LR {last:g} at {total_steps - 1}"),
            PlanEvent("overrun", total_steps + 1, f"torch raises ValueError on scheduler step {total_steps + 1}"),
        ),
    )
