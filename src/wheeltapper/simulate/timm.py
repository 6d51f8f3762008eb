"""timm's schedulers: the LR of epoch (or update) t.

Read from timm/scheduler/*.py (2026-08). `t` counts epochs unless the run used --sched-on-updates. Values are
closed forms of t, except the first: the constructor leaves warmup_lr_init, or the base LR, in the optimizer,
and nothing is computed for t = 0. LR noise (--lr-noise) draws from torch's generator and is not simulated.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence

from wheeltapper.simulate.compound import reduce_on_plateau
from wheeltapper.simulate.plan import MOST_EVENTS, PlanEvent
from wheeltapper.simulate.rules import Rule, need


def _rule(
    value: Callable[[float, float], float],
    warmup_t: int,
    warmup_lr_init: float,
    warmup_prefix: bool,
    target: Callable[[float], float] = lambda base: base,
    total: float | None = None,
    events: tuple[PlanEvent, ...] = (),
) -> Rule:
    """A scheduler with timm's linear warm-up from warmup_lr_init; `value(t, base)` after it."""
    slope: dict[float, float] = {}

    def step(t: int, x: float, base: float) -> float:
        if t < warmup_t:
            if base not in slope:
                slope[base] = (target(base) - warmup_lr_init) / warmup_t
            return warmup_lr_init + t * slope[base]
        return value(t - warmup_t if warmup_prefix else t, base)

    warm = (PlanEvent("warmup_end", warmup_t, f"full LR at {warmup_t}"),) if warmup_t else ()
    return Rule(lambda x, base: warmup_lr_init if warmup_t else x, step, total=total, events=warm + events)


def _cycle(t: float, t_initial: float, cycle_mul: float) -> tuple[int, float, float]:
    """Which cycle t lies in, that cycle's length, and the position inside it."""
    if cycle_mul != 1:
        i = math.floor(math.log(1 - t / t_initial * (1 - cycle_mul), cycle_mul))
        return i, cycle_mul**i * t_initial, t - (1 - cycle_mul**i) / (1 - cycle_mul) * t_initial
    i = int(t // t_initial)
    return i, t_initial, t - t_initial * i


def cycle_length(t_initial: int, cycle_mul: float = 1.0, cycle_limit: int = 1, warmup: int = 0) -> int:
    """Ticks until the last cycle ends: what timm trains for, before cooldown (`warmup` only with a prefix)."""
    cycles = max(1, cycle_limit)
    if cycle_mul == 1.0:
        return t_initial * cycles + warmup
    return math.floor(-t_initial * (cycle_mul**cycles - 1) / (1 - cycle_mul)) + warmup


def _cyclic(
    inside: Callable[[float, float, float], float],
    t_initial: int,
    lr_min: float,
    cycle_mul: float,
    cycle_decay: float,
    cycle_limit: int,
    warmup_t: int,
    warmup_lr_init: float,
    warmup_prefix: bool,
    warm_to_curve: bool = False,
) -> Rule:
    need(t_initial > 0, f"t_initial must be positive, not {t_initial}.")

    def value(t: float, base: float) -> float:
        i, length, inner = _cycle(t, t_initial, cycle_mul)
        if i >= cycle_limit:
            return lr_min
        return inside(base * cycle_decay**i, inner, length)

    offset = warmup_t if warmup_prefix else 0
    total = cycle_length(t_initial, cycle_mul, cycle_limit, offset)
    starts = [cycle_length(t_initial, cycle_mul, i, offset) for i in range(1, min(cycle_limit, MOST_EVENTS))]
    events = (
        *(PlanEvent("restart", at, f"cycle restarts at {at}") for at in starts),
        PlanEvent("end", total, f"LR {lr_min:g} from {total}"),
    )
    # timm's tanh warms up to its own value at warmup_t, the others to the base LR.
    target = (lambda base: value(warmup_t, base)) if warm_to_curve and not warmup_prefix else (lambda base: base)
    return _rule(value, warmup_t, warmup_lr_init, warmup_prefix, target, total, events)


def cosine(
    t_initial: int,
    lr_min: float = 0.0,
    cycle_mul: float = 1.0,
    cycle_decay: float = 1.0,
    cycle_limit: int = 1,
    warmup_t: int = 0,
    warmup_lr_init: float = 0.0,
    warmup_prefix: bool = False,
    k_decay: float = 1.0,
) -> Rule:
    def inside(top: float, t: float, length: float) -> float:
        return lr_min + 0.5 * (top - lr_min) * (1 + math.cos(math.pi * t**k_decay / length**k_decay))

    return _cyclic(
        inside, t_initial, lr_min, cycle_mul, cycle_decay, cycle_limit, warmup_t, warmup_lr_init, warmup_prefix
    )


def tanh(
    t_initial: int,
    lb: float = -7.0,
    ub: float = 3.0,
    lr_min: float = 0.0,
    cycle_mul: float = 1.0,
    cycle_decay: float = 1.0,
    cycle_limit: int = 1,
    warmup_t: int = 0,
    warmup_lr_init: float = 0.0,
    warmup_prefix: bool = False,
) -> Rule:
    def inside(top: float, t: float, length: float) -> float:
        tr = t / length
        return lr_min + 0.5 * (top - lr_min) * (1 - math.tanh(lb * (1.0 - tr) + ub * tr))

    return _cyclic(
        inside, t_initial, lr_min, cycle_mul, cycle_decay, cycle_limit, warmup_t, warmup_lr_init, warmup_prefix, True
    )


def poly(
    t_initial: int,
    power: float = 0.5,
    lr_min: float = 0.0,
    cycle_mul: float = 1.0,
    cycle_decay: float = 1.0,
    cycle_limit: int = 1,
    warmup_t: int = 0,
    warmup_lr_init: float = 0.0,
    warmup_prefix: bool = False,
    k_decay: float = 1.0,
) -> Rule:
    def inside(top: float, t: float, length: float) -> float:
        left: float = (1 - t**k_decay / length**k_decay) ** power
        return lr_min + (top - lr_min) * left

    return _cyclic(
        inside, t_initial, lr_min, cycle_mul, cycle_decay, cycle_limit, warmup_t, warmup_lr_init, warmup_prefix
    )


def step(
    decay_t: float,
    decay_rate: float = 1.0,
    warmup_t: int = 0,
    warmup_lr_init: float = 0.0,
    warmup_prefix: bool = True,
) -> Rule:
    need(decay_t > 0, f"decay_t must be positive, not {decay_t:g}.")
    return _rule(lambda t, base: base * decay_rate ** (t // decay_t), warmup_t, warmup_lr_init, warmup_prefix)


def multistep(
    decay_t: Sequence[int],
    decay_rate: float = 1.0,
    warmup_t: int = 0,
    warmup_lr_init: float = 0.0,
    warmup_prefix: bool = True,
) -> Rule:
    """Cuts one tick *before* each milestone: timm looks up t + 1."""
    cuts = list(decay_t)
    offset = warmup_t if warmup_prefix else 0
    events = tuple(PlanEvent("milestone", at - 1 + offset, f"LR × {decay_rate:g}") for at in cuts)
    return _rule(
        lambda t, base: base * decay_rate ** bisect_right(cuts, t + 1),
        warmup_t,
        warmup_lr_init,
        warmup_prefix,
        events=events,
    )


def plateau(
    metrics: Sequence[float],
    decay_rate: float = 0.1,
    patience_t: int = 10,
    threshold: float = 1e-4,
    cooldown_t: int = 0,
    warmup_t: int = 0,
    warmup_lr_init: float = 0.0,
    lr_min: float = 0.0,
    mode: str = "max",
) -> Rule:
    """torch's plateau rule on the eval metric of each epoch, after a warm-up during which it does not look."""
    inner = reduce_on_plateau(
        metrics,
        mode=mode,
        factor=decay_rate,
        patience=patience_t,
        threshold=threshold,
        cooldown=cooldown_t,
        min_lr=lr_min,
    )

    def step(t: int, x: float, base: float) -> float:
        if t <= warmup_t:
            return warmup_lr_init + t * ((base - warmup_lr_init) / warmup_t if warmup_t else 1.0)
        return inner.step(t, x, base)

    warm = (PlanEvent("warmup_end", warmup_t, f"full LR at {warmup_t}"),) if warmup_t else ()
    return Rule(lambda x, base: warmup_lr_init if warmup_t else x, step, events=warm)
