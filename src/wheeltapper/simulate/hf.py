"""The schedules of transformers.get_scheduler: a factor of the base LR at each update.

Read from transformers/optimization.py (2026-08). All but the plateau one are LambdaLR, so the value does not
depend on history. `num_training_steps` and `num_warmup_steps` count optimizer updates; under Accelerate the
scheduler ticks `num_processes` times an update (`plan.strided`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from wheeltapper.simulate.plan import MOST_EVENTS, PlanEvent
from wheeltapper.simulate.rules import need

Factor = Callable[[int], float]


@dataclass(frozen=True, slots=True)
class Shape:
    """A factor of the base LR, its length and what happens on the way."""

    factor: Factor
    total: float | None = None
    events: tuple[PlanEvent, ...] = ()


def _warm(t: int, steps: float) -> float:
    return float(t) / float(max(1.0, steps))


def _events(warmup: float, total: float | None, end: str = "lowest LR") -> tuple[PlanEvent, ...]:
    found = []
    if warmup > 0:
        found.append(PlanEvent("warmup_end", warmup, f"full LR at {warmup:g}"))
    if total is not None:
        found.append(PlanEvent("end", total, f"{end} at {total:g}"))
    return tuple(found)


def constant() -> Shape:
    return Shape(lambda t: 1.0)


def constant_with_warmup(num_warmup_steps: int) -> Shape:
    return Shape(
        lambda t: _warm(t, num_warmup_steps) if t < num_warmup_steps else 1.0, None, _events(num_warmup_steps, None)
    )


def linear(num_training_steps: int, num_warmup_steps: int = 0) -> Shape:
    span = float(max(1, num_training_steps - num_warmup_steps))

    def factor(t: int) -> float:
        if t < num_warmup_steps:
            return _warm(t, num_warmup_steps)
        return max(0.0, float(num_training_steps - t) / span)

    return Shape(factor, num_training_steps, _events(num_warmup_steps, num_training_steps, "LR 0"))


def cosine(
    num_training_steps: int, num_warmup_steps: int = 0, num_cycles: float = 0.5, min_lr_rate: float = 0.0
) -> Shape:
    """Half a wave by default. With num_cycles > 0.5 the LR rises again, and so it does past the end."""
    span = float(max(1, num_training_steps - num_warmup_steps))

    def factor(t: int) -> float:
        if t < num_warmup_steps:
            return _warm(t, num_warmup_steps)
        progress = float(t - num_warmup_steps) / span
        wave = 0.5 * (1.0 + math.cos(math.pi * float(num_cycles) * 2.0 * progress))
        return max(0.0, wave * (1 - min_lr_rate) + min_lr_rate if min_lr_rate else wave)

    half = num_warmup_steps + span / (2.0 * num_cycles) if num_cycles > 0 else None
    events = _events(num_warmup_steps, half)
    if half is not None:
        events += (PlanEvent("rise", half + 1, f"the cosine climbs again after {half:g}"),)
    return Shape(factor, num_training_steps, events)


def cosine_with_min_lr(
    lr: float,
    num_training_steps: int,
    num_warmup_steps: int = 0,
    num_cycles: float = 0.5,
    min_lr: float | None = None,
    min_lr_rate: float | None = None,
) -> Shape:
    return cosine(num_training_steps, num_warmup_steps, num_cycles, _rate(lr, min_lr, min_lr_rate))


def cosine_warmup_with_min_lr(
    lr: float,
    num_training_steps: int,
    num_warmup_steps: int = 0,
    num_cycles: float = 0.5,
    min_lr: float | None = None,
    min_lr_rate: float | None = None,
    warmup_lr_rate: float | None = None,
) -> Shape:
    """The variant that counts from 1: warm-up (t+1)/w, and the cosine one tick ahead."""
    rate = _rate(lr, min_lr, min_lr_rate)

    def factor(t: int) -> float:
        if t < num_warmup_steps:
            if warmup_lr_rate is None:
                return (t + 1.0) / max(1.0, num_warmup_steps)
            return warmup_lr_rate + (1.0 - warmup_lr_rate) * t / max(1, num_warmup_steps - 1)
        progress = (t - num_warmup_steps + 1.0) / max(1.0, num_training_steps - num_warmup_steps)
        wave = 0.5 * (1.0 + math.cos(math.pi * num_cycles * 2.0 * progress))
        return max(0.0, wave * (1 - rate) + rate)

    return Shape(factor, num_training_steps, _events(num_warmup_steps, num_training_steps - 1))


def _rate(lr: float, min_lr: float | None, min_lr_rate: float | None) -> float:
    need((min_lr is None) != (min_lr_rate is None), "give exactly one of min_lr and min_lr_rate.")
    return min_lr / lr if min_lr is not None else float(min_lr_rate or 0.0)


def cosine_with_restarts(num_training_steps: int, num_warmup_steps: int = 0, num_cycles: int = 1) -> Shape:
    span = float(max(1, num_training_steps - num_warmup_steps))

    def factor(t: int) -> float:
        if t < num_warmup_steps:
            return _warm(t, num_warmup_steps)
        progress = float(t - num_warmup_steps) / span
        if progress >= 1.0:
            return 0.0
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * ((float(num_cycles) * progress) % 1.0))))

    starts = tuple(
        PlanEvent("restart", num_warmup_steps + span * i / num_cycles, f"cosine restart {i}")
        for i in range(1, min(math.ceil(num_cycles), MOST_EVENTS))
    )
    return Shape(factor, num_training_steps, _events(num_warmup_steps, num_training_steps, "LR 0") + starts)


def polynomial(
    lr: float, num_training_steps: int, num_warmup_steps: int = 0, lr_end: float = 1e-7, power: float = 1.0
) -> Shape:
    need(lr > lr_end, f"lr_end ({lr_end:g}) must be smaller than the LR ({lr:g}).")
    span = num_training_steps - num_warmup_steps

    def factor(t: int) -> float:
        if t < num_warmup_steps:
            return _warm(t, num_warmup_steps)
        if t > num_training_steps:
            return lr_end / lr
        remaining: float = (1 - (t - num_warmup_steps) / span) ** power
        return ((lr - lr_end) * remaining + lr_end) / lr

    return Shape(factor, num_training_steps, _events(num_warmup_steps, num_training_steps, f"LR {lr_end:g}"))


def inverse_sqrt(num_warmup_steps: int = 0, timescale: int | None = None) -> Shape:
    scale = timescale if timescale is not None else (num_warmup_steps or 10_000)
    shift = scale - num_warmup_steps

    def factor(t: int) -> float:
        if t < num_warmup_steps:
            return _warm(t, num_warmup_steps)
        return 1.0 / math.sqrt((t + shift) / scale)

    return Shape(factor, None, _events(num_warmup_steps, None))


def warmup_stable_decay(
    num_warmup_steps: int,
    num_decay_steps: int,
    num_training_steps: int | None = None,
    num_stable_steps: int | None = None,
    warmup_type: str = "linear",
    decay_type: str = "cosine",
    min_lr_ratio: float = 0.0,
    num_cycles: float = 0.5,
) -> Shape:
    """Warm-up, plateau, decay. Steps beyond the three stay at min_lr_ratio."""
    if num_stable_steps is None:
        need(num_training_steps is not None, "warmup_stable_decay needs num_training_steps or num_stable_steps.")
        num_stable_steps = int(num_training_steps or 0) - num_warmup_steps - num_decay_steps
    warms: dict[str, Callable[[float], float]] = {
        "linear": lambda p: p,
        "cosine": lambda p: 0.5 * (1.0 - math.cos(math.pi * p)),
        "1-sqrt": lambda p: 1.0 - math.sqrt(1.0 - p),
    }
    decays: dict[str, Callable[[float], float]] = {
        "linear": lambda p: 1.0 - p,
        "cosine": lambda p: 0.5 * (1.0 + math.cos(math.pi * float(num_cycles) * 2.0 * p)),
        "1-sqrt": lambda p: 1.0 - math.sqrt(p),
    }
    need(warmup_type in warms, f"no warmup_type {warmup_type!r}.", f"One of: {', '.join(warms)}.")
    need(decay_type in decays, f"no decay_type {decay_type!r}.", f"One of: {', '.join(decays)}.")
    begun = num_warmup_steps + num_stable_steps
    ended = begun + num_decay_steps

    def factor(t: int) -> float:
        if t < num_warmup_steps:
            shape = warms[warmup_type](_warm(t, num_warmup_steps))
        elif t < begun:
            return 1.0
        elif t < ended:
            shape = decays[decay_type](float(t - num_warmup_steps - num_stable_steps) / float(max(1, num_decay_steps)))
        else:
            return min_lr_ratio
        return max(0.0, shape * (1.0 - min_lr_ratio) + min_lr_ratio)

    decay = PlanEvent("milestone", begun, f"decay begins at {begun:g}")
    return Shape(factor, ended, (*_events(num_warmup_steps, ended), decay))
