"""Schedules that live in a training loop rather than in a scheduler class.

Each says which tick its first update uses, since that is where loops differ: nanoGPT and EDM look up the
update's own number from 0, SEDD and BasicSR from 1, traiNNer-redux changes the LR after the update. Read from
the named projects' public code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from wheeltapper.simulate.hf import Shape
from wheeltapper.simulate.plan import PlanEvent
from wheeltapper.simulate.rules import Rule, need


def basicsr_warmup(rule: Rule, warmup_iter: int = -1, after_update: bool = False) -> Rule:
    """BasicSR's warm-up: the scheduler steps, then the LR is overwritten by initial·i/warmup while i < warmup.

    A chainable scheduler goes on from what was last written, so the LR stays at (w-1)/w of its nominal value
    after the warm-up. BasicSR sets the LR of iteration i (from 1) before its update; traiNNer-redux after it
    (`after_update`), so there the very first update runs at the full LR.
    """
    initial: list[float] = []

    def overwrite(i: int, x: float) -> float:
        return initial[0] / warmup_iter * i if i < warmup_iter else x

    def start(x: float, base: float) -> float:
        initial[:] = [x if rule.initial is None else rule.initial]
        first = rule.start(x, base)
        return first if after_update else overwrite(1, first)

    def step(t: int, x: float, base: float) -> float:
        return overwrite(t if after_update else t + 1, rule.step(t, x, base))

    warm: tuple[PlanEvent, ...] = ()
    if warmup_iter > 1:
        text = f"warm-up ends at iteration {warmup_iter}"
        warm = (PlanEvent("warmup_end", warmup_iter - (not after_update), text),)
    return Rule(
        start,
        step,
        limit=rule.limit,
        total=rule.total,
        events=warm + rule.events,
        momentum=rule.momentum,
        initial=rule.initial,
        own_base=rule.own_base,
        sets_lr=rule.sets_lr,
    )


def multi_step_restart(
    milestones: Sequence[int],
    gamma: float = 0.1,
    restarts: Sequence[int] = (0,),
    restart_weights: Sequence[float] = (1.0,),
) -> Rule:
    """BasicSR's MultiStepLR: torch's, which also goes back to a weight of the initial LR at `restarts`."""
    need(len(restarts) == len(restart_weights), "restarts and restart_weights must have the same length.")
    cuts = {at: gamma ** list(milestones).count(at) for at in milestones}
    back = dict(reversed(list(zip(restarts, restart_weights, strict=True))))

    def at(t: int, x: float, base: float) -> float:
        if t in back:
            return base * back[t]
        return x * cuts[t] if t in cuts else x

    events = [PlanEvent("milestone", m, f"LR × {cuts[m]:g} at {m}") for m in sorted(cuts)]
    events += [PlanEvent("restart", r, f"back to {w:g} × LR at {r}") for r, w in back.items() if r > 0]
    return Rule(lambda x, base: at(0, x, base), at, events=tuple(events))


def cosine_restart(periods: Sequence[int], restart_weights: Sequence[float] = (1.0,), eta_min: float = 0.0) -> Rule:
    """BasicSR's CosineAnnealingRestartLR; it raises once the periods are used up."""
    need(len(periods) == len(restart_weights), "periods and restart_weights must have the same length.")
    ends = [sum(periods[: i + 1]) for i in range(len(periods))]

    def value(t: int, base: float) -> float:
        index = next(i for i, end in enumerate(ends) if t <= end)
        begun = 0 if index == 0 else ends[index - 1]
        wave = 1 + math.cos(math.pi * ((t - begun) / periods[index]))
        return eta_min + restart_weights[index] * 0.5 * (base - eta_min) * wave

    starts = tuple(PlanEvent("restart", end, f"cosine restart after {end}") for end in ends[:-1])
    return Rule(
        lambda x, base: value(0, base), lambda t, x, base: value(t, base), limit=ends[-1], total=ends[-1], events=starts
    )


def nanogpt(lr: float, warmup_iters: int, lr_decay_iters: int, min_lr: float, counts_from_one: bool = True) -> Shape:
    """nanoGPT's get_lr. Since 2023-11 its warm-up is (it+1)/(w+1); before it was it/w (first update at LR 0)."""

    def factor(it: int) -> float:
        if it < warmup_iters:
            return (it + 1) / (warmup_iters + 1) if counts_from_one else it / warmup_iters
        if it > lr_decay_iters:
            return min_lr / lr
        ratio = (it - warmup_iters) / max(1, lr_decay_iters - warmup_iters)
        return (min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (lr - min_lr)) / lr

    return Shape(factor, lr_decay_iters, _marks(warmup_iters, lr_decay_iters, min_lr))


def _marks(warmup: float, end: float | None, low: float) -> tuple[PlanEvent, ...]:
    marks = [PlanEvent("warmup_end", warmup, f"full LR at {warmup:g}")] if warmup > 0 else []
    if end is not None:
        marks.append(PlanEvent("end", end, f"LR {low:g} from {end:g}"))
    return tuple(marks)


def megatron(
    lr: float,
    lr_decay_steps: float,
    lr_warmup_steps: float = 0.0,
    lr_decay_style: str = "linear",
    min_lr: float = 0.0,
    init_lr: float = 0.0,
    increment: float = 1.0,
    wsd_decay_steps: float = 0.0,
    wsd_decay_style: str = "exponential",
) -> Shape:
    """Megatron-LM. Lengths are in what it counts: iterations (increment 1) or samples (increment = global batch).

    Warm-up includes its last tick (num_steps <= warmup), decay ends at min_lr and stays there. A skipped
    iteration does not advance it. The log shows the LR after the step: tick i on line i.
    """
    styles: dict[str, Callable[[float], float]] = {
        "linear": lambda r: 1.0 - r,
        "cosine": lambda r: 0.5 * (math.cos(math.pi * r) + 1.0),
        "exponential": lambda r: 2.0 * math.pow(0.5, r) - 1.0,
        "minus_sqrt": lambda r: 1.0 - math.sqrt(r),
    }
    known = ("constant", "linear", "cosine", "inverse-square-root", "WSD")
    need(lr_decay_style in known, f"Megatron has no decay style {lr_decay_style!r}.", f"One of: {', '.join(known)}.")

    def value(tick: int) -> float:
        done = tick * increment
        if lr_warmup_steps > 0 and done <= lr_warmup_steps:
            return init_lr + (lr - init_lr) * done / lr_warmup_steps
        if lr_decay_style == "constant":
            return lr
        if done > lr_decay_steps:
            return min_lr
        if lr_decay_style == "inverse-square-root":
            return max(min_lr, float(lr * max(lr_warmup_steps, 1) ** 0.5 / max(done, 1) ** 0.5))
        if lr_decay_style == "WSD":
            start = lr_decay_steps - wsd_decay_steps
            coeff = 1.0 if done <= start else styles[wsd_decay_style]((done - start) / wsd_decay_steps)
        else:
            coeff = styles[lr_decay_style]((done - lr_warmup_steps) / (lr_decay_steps - lr_warmup_steps))
        return min_lr + coeff * (lr - min_lr)

    end = None if lr_decay_style == "constant" else lr_decay_steps / increment
    return Shape(lambda t: value(t) / lr, end, _marks(lr_warmup_steps / increment, end, min_lr))


def ultralytics(
    epochs: int,
    steps_per_epoch: int,
    lrf: float = 0.01,
    cos_lr: bool = False,
    warmup_epochs: float = 3.0,
    warmup_bias_lr: float = 0.1,
    lr: float = 0.01,
    bias: bool = False,
) -> Shape:
    """YOLO: lf(epoch) held for an epoch, with a per-batch linear warm-up of at least 100 batches.

    Weights warm up from 0, biases (`bias`; group 0 in ultralytics, group 2 in YOLOv5) from warmup_bias_lr down.
    """
    warm = max(round(warmup_epochs * steps_per_epoch), 100) if warmup_epochs > 0 else -1

    def epoch_factor(epoch: int) -> float:
        if cos_lr:
            return ((1 - math.cos(epoch * math.pi / epochs)) / 2) * (lrf - 1) + 1
        return max(1 - epoch / epochs, 0) * (1.0 - lrf) + lrf

    def factor(t: int) -> float:
        level = epoch_factor(t // steps_per_epoch)
        if t > warm:
            return level
        start = warmup_bias_lr / lr if bias else 0.0
        return start + (level - start) * t / warm if t < warm else level

    total = epochs * steps_per_epoch
    return Shape(factor, total, _marks(max(warm, 0), total, lr * lrf))


def mmcv(
    policy: str,
    steps_per_epoch: int = 1,
    max_epochs: int | None = None,
    max_iters: int | None = None,
    by_epoch: bool = True,
    warmup: str | None = None,
    warmup_iters: int = 0,
    warmup_ratio: float = 0.1,
    warmup_by_epoch: bool = False,
    step: Sequence[int] | int = (),
    gamma: float = 0.1,
    power: float = 1.0,
    min_lr: float | None = None,
    min_lr_ratio: float | None = None,
    lr: float = 1.0,
) -> Shape:
    """mmcv's LrUpdaterHook: the regular LR by epoch (or iteration), times a warm-up ramp by iteration."""
    known = ("fixed", "step", "exp", "poly", "inv", "cosineannealing")
    kind = policy.lower().replace("_", "").removesuffix("lrupdaterhook")
    kind = "cosineannealing" if kind in ("cosine", "cosineannealinglr") else kind
    need(kind in known, f"no simulation of the mmcv policy {policy!r}.", f"Known: {', '.join(known)}.")
    warm = warmup_iters * steps_per_epoch if warmup_by_epoch else warmup_iters
    length = (max_epochs if by_epoch else max_iters) or 0
    need(kind not in ("poly", "cosineannealing") or length > 0, f"{policy} needs the length of the run.")
    floor = lr * min_lr_ratio if min_lr_ratio is not None else min_lr

    @lru_cache(maxsize=4)  # an epoch's value is asked for on each of its iterations
    def regular(progress: int) -> float:
        if kind == "step":
            done = progress // step if isinstance(step, int) else sum(progress >= s for s in step)
            value = lr * gamma**done
            return value if floor is None else max(value, floor)
        if kind == "exp":
            return float(lr * gamma**progress)
        if kind == "poly":
            return (lr - (floor or 0.0)) * float((1 - progress / length) ** power) + (floor or 0.0)
        if kind == "inv":
            return float(lr * (1 + gamma * progress) ** (-power))
        if kind == "cosineannealing":
            low = floor or 0.0
            return low + 0.5 * (lr - low) * (math.cos(math.pi * (progress / length)) + 1)
        return lr

    def factor(t: int) -> float:
        value = regular(t // steps_per_epoch if by_epoch else t) / lr
        if warmup is None or t >= warm:
            return value
        if warmup == "constant":
            return value * warmup_ratio
        if warmup == "linear":
            return value * (1 - (1 - t / warm) * (1 - warmup_ratio))
        return float(value * warmup_ratio ** (1 - t / warm))

    ticks = steps_per_epoch if by_epoch else 1
    marks = [] if isinstance(step, int) else [PlanEvent("milestone", s * ticks, f"LR × {gamma:g}") for s in step]
    if warmup is not None:
        marks.append(PlanEvent("warmup_end", warm, f"full LR at {warm}"))
    return Shape(factor, length * ticks or None, tuple(marks))


def sedd(warmup: int) -> Shape:
    """lr·min(step/warmup, 1) with the step counted from 1: the first update is not at LR 0."""
    if warmup <= 0:
        return Shape(lambda t: 1.0)
    return Shape(lambda t: min((t + 1) / warmup, 1.0), None, _marks(warmup - 1, None, 0.0))


def edm(batch_size: int, lr_rampup_kimg: float = 10_000) -> Shape:
    """EDM: a linear ramp over images, then constant; the first update is at LR 0."""
    ramp = max(lr_rampup_kimg * 1000, 1e-8)
    return Shape(lambda t: min(t * batch_size / ramp, 1.0), None, _marks(math.ceil(ramp / batch_size), None, 0.0))


def edm2(batch_size: int, ref_batches: float = 70e3, rampup_Mimg: float = 10) -> Shape:
    """EDM2: the ramp times 1/√(images/(ref_batches·batch)) beyond ref_batches."""

    def factor(t: int) -> float:
        images = t * batch_size
        value = 1.0
        if ref_batches > 0:
            value /= math.sqrt(max(images / (ref_batches * batch_size), 1))
        if rampup_Mimg > 0:
            value *= min(images / (rampup_Mimg * 1e6), 1)
        return value

    return Shape(factor, None, _marks(math.ceil(rampup_Mimg * 1e6 / batch_size), None, 0.0))


def openai_anneal(lr_anneal_steps: int) -> Shape:
    """OpenAI's diffusion loop: linear to 0 over lr_anneal_steps, where the loop ends; 0 means constant."""
    if not lr_anneal_steps:
        return Shape(lambda t: 1.0)
    return Shape(lambda t: 1 - t / lr_anneal_steps, lr_anneal_steps, _marks(0, lr_anneal_steps, 0.0))
