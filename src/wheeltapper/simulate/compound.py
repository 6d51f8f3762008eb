"""Schedulers made of schedulers or of a metric, and the loop that runs a rule on every parameter group."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from wheeltapper.reading.record import Floats
from wheeltapper.simulate.plan import Plan, PlanEvent, PlanUnit
from wheeltapper.simulate.rules import Rule, need


class _Group:
    """A parameter group while schedulers are being attached to it: its LR and its initial_lr."""

    def __init__(self, lr: float) -> None:
        self.lr = lr
        self.initial: float | None = None

    def attach(self, rule: Rule) -> float:
        """What the scheduler's constructor does to the group; returns the base LR it will use."""
        if rule.sets_lr is not None:
            self.lr = rule.sets_lr
        if rule.initial is not None:
            self.initial = rule.initial
        elif self.initial is None:
            self.initial = self.lr
        base = self.initial if rule.own_base is None else rule.own_base
        self.lr = rule.start(self.lr, base)
        return base


def run_rule(rule: Rule, lr: float, n: int) -> tuple[list[float], int | None]:
    """n + 1 values of one rule on one group, and the tick at which torch raises, if it does."""
    group = _Group(lr)
    try:
        base = group.attach(rule)
    except ZeroDivisionError:
        need(False, "torch divides by zero when this scheduler is built.", "Change its lengths.")
        raise
    x, values, step = group.lr, [group.lr], rule.step
    stop = n if rule.limit is None else min(n, rule.limit)
    t = 0
    try:
        for t in range(1, stop + 1):
            x = step(t, x, base)
            values.append(x)
    except ZeroDivisionError:
        stop = t - 1
    died = stop + 1 if stop < n else None
    values.extend([math.nan] * (n - stop))
    return values, died


def run_rules(name: str, make: Callable[[int], Rule], lrs: Sequence[float], n: int, unit: PlanUnit = "steps") -> Plan:
    """The plan of `make(group)` on groups with the given base LRs."""
    columns: list[list[float]] = []
    momenta: list[Floats] = []
    died: int | None = None
    rule = make(0)
    for index, lr in enumerate(lrs):
        current = rule if index == 0 else make(index)
        values, died = run_rule(current, lr, n)
        columns.append(values)
        if current.momentum is not None:
            alive = n if died is None else died - 1
            momentum = np.full(n + 1, np.nan)
            momentum[: alive + 1] = current.momentum(np.arange(alive + 1, dtype=np.float64))
            momenta.append(momentum)
    events = [event for event in rule.events if event.kind == "overrun" or event.at <= n]
    if died is not None and not any(event.kind == "overrun" for event in events):
        events.append(PlanEvent("overrun", died, f"torch raises on scheduler step {died}"))
    elif died is None:
        events = [event for event in events if event.kind != "overrun"]
    return Plan(
        name=name,
        values=np.array(columns, dtype=np.float64),
        unit=unit,
        total=rule.total,
        momentum=np.array(momenta) if momenta else None,
        events=tuple(sorted(events, key=lambda event: event.at)),
    )


def sequential_lr(rules: Sequence[Rule], milestones: Sequence[int]) -> Rule:
    """One scheduler after the other; each begins again from its base LR at its milestone."""
    need(len(rules) >= 1, "SequentialLR needs at least one scheduler.")
    need(
        len(milestones) == len(rules) - 1,
        f"SequentialLR needs one milestone fewer than schedulers: {len(rules)} schedulers, "
        f"{len(milestones)} milestones.",
    )
    bases: list[float] = []
    local = [-1] * len(rules)

    def start(x: float, base: float) -> float:
        group = _Group(x)
        bases[:] = [group.attach(rule) for rule in rules]
        first = bisect_right(milestones, 0)
        local[first] = 0
        assert group.initial is not None
        return rules[first].start(group.initial, bases[first])

    def step(t: int, x: float, base: float) -> float:
        index = bisect_right(milestones, t)
        rule = rules[index]
        if index > 0 and milestones[index - 1] == t:
            local[index] = 0
            return rule.again(x, bases[index])
        local[index] += 1
        return rule.step(local[index], x, bases[index])

    events: list[PlanEvent] = []
    bounds = [0, *milestones, math.inf]
    for rule, (begun, ended) in zip(rules, pairwise(bounds), strict=True):
        moved = (replace(event, at=event.at + begun) for event in rule.events)
        events += [event for event in moved if event.at <= ended]
        if ended < math.inf:
            events.append(PlanEvent("milestone", ended, f"the next scheduler takes over at {ended:g}"))
    last = rules[-1].total
    limit = rules[-1].limit
    return Rule(
        start,
        step,
        total=None if last is None else last + bounds[-2],
        limit=None if limit is None else limit + int(bounds[-2]),
        events=tuple(events),
    )


def chained_scheduler(rules: Sequence[Rule]) -> Rule:
    """All schedulers step each time, each on the LR the one before it left."""
    need(len(rules) >= 1, "ChainedScheduler needs at least one scheduler.")
    bases: list[float] = []

    def start(x: float, base: float) -> float:
        group = _Group(x)
        bases[:] = [group.attach(rule) for rule in rules]
        return group.lr

    def step(t: int, x: float, base: float) -> float:
        for rule, own in zip(rules, bases, strict=True):
            x = rule.step(t, x, own)
        return x

    limits = [rule.limit for rule in rules if rule.limit is not None]
    totals = [rule.total for rule in rules if rule.total is not None]
    return Rule(
        start,
        step,
        limit=min(limits) if limits else None,
        total=max(totals) if totals else None,
        events=tuple(event for rule in rules for event in rule.events),
    )


def reduce_on_plateau(
    metrics: Sequence[float],
    mode: str = "min",
    factor: float = 0.1,
    patience: int = 10,
    threshold: float = 1e-4,
    threshold_mode: str = "rel",
    cooldown: int = 0,
    min_lr: float = 0.0,
    eps: float = 1e-8,
) -> Rule:
    """ReduceLROnPlateau fed `metrics`, one a tick. NaN is never better, so it counts as bad (SCH-10)."""
    need(factor < 1.0, f"ReduceLROnPlateau needs factor < 1, not {factor:g}.")
    need(mode in ("min", "max"), f"mode is 'min' or 'max', not {mode!r}.")
    need(threshold_mode in ("rel", "abs"), f"threshold_mode is 'rel' or 'abs', not {threshold_mode!r}.")
    state = {"best": math.inf if mode == "min" else -math.inf, "bad": 0, "cool": 0}

    def better(a: float, best: float) -> bool:
        if mode == "min":
            return a < (best * (1.0 - threshold) if threshold_mode == "rel" else best - threshold)
        return a > (best * (threshold + 1.0) if threshold_mode == "rel" else best + threshold)

    def step(t: int, x: float, base: float) -> float:
        current = float(metrics[t - 1])
        if better(current, state["best"]):
            state["best"] = current
            state["bad"] = 0
        else:
            state["bad"] += 1
        if state["cool"] > 0:
            state["cool"] -= 1
            state["bad"] = 0
        if state["bad"] > patience:
            state["cool"], state["bad"] = cooldown, 0
            lower = max(x * factor, min_lr)
            return lower if x - lower > eps else x
        return x

    return Rule(lambda x, base: x, step, limit=len(metrics))
