"""mmengine's param_scheduler list: several schedulers on one LR, each with its own begin, end and clock.

Read from mmengine/optim/scheduler/param_scheduler.py. A scheduler acts on ticks begin <= tick < end of its
clock (epochs by default), on the LR the others left. Lengths follow from begin and end: LinearLR and PolyLR
reach their end on tick end - 1, CosineAnnealingLR its minimum after end - begin unless T_max says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wheeltapper.errors import InputError
from wheeltapper.simulate import rules
from wheeltapper.simulate.plan import Plan, PlanEvent
from wheeltapper.simulate.rules import Rule

ENDLESS = int(1e9)  # mmengine's INF


def _poly(total: int, power: float, eta_min: float) -> Rule:
    def step(t: int, x: float, base: float) -> float:
        decay: float = ((1.0 - t / total) / (1.0 - (t - 1) / total)) ** power
        return (x - eta_min) * decay + eta_min

    return Rule(lambda x, base: x, step, total=total)


def _eta_min(p: Mapping[str, Any], lr: float) -> float:
    ratio = p.get("eta_min_ratio")
    return float(lr * ratio if ratio is not None else p.get("eta_min") or 0.0)


# kind -> (its parameters, end - begin, base LR) -> rule
KINDS: dict[str, Callable[[Mapping[str, Any], int, float], Rule]] = {
    "LinearLR": lambda p, n, lr: rules.linear_lr(p.get("start_factor", 1 / 3), p.get("end_factor", 1.0), n - 1),
    "ConstantLR": lambda p, n, lr: rules.constant_lr(p.get("factor", 1 / 3), n - 1),
    "MultiStepLR": lambda p, n, lr: rules.multi_step_lr(p["milestones"], p.get("gamma", 0.1)),
    "StepLR": lambda p, n, lr: rules.step_lr(p["step_size"], p.get("gamma", 0.1)),
    "ExponentialLR": lambda p, n, lr: rules.exponential_lr(p["gamma"]),
    "CosineAnnealingLR": lambda p, n, lr: rules.cosine_annealing_lr(p.get("T_max") or n, _eta_min(p, lr)),
    "PolyLR": lambda p, n, lr: _poly(n - 1, p.get("power", 1.0), _eta_min(p, lr)),
}


def simulate(lrs: Sequence[float], n: int, schedulers: Sequence[Mapping[str, Any]], steps_per_epoch: int = 1) -> Plan:
    """n updates under a param_scheduler list, for groups with base LRs `lrs`."""
    rows = []
    events: list[PlanEvent] = []
    for lr in lrs:
        parts = [_Part(spec, steps_per_epoch, lr) for spec in schedulers]
        x = lr
        for part in parts:
            x = part.tick(x, lr)
        row = [x]
        for t in range(1, n + 1):
            for part in parts:
                if not part.by_epoch:
                    x = part.tick(x, lr)
            if t % steps_per_epoch == 0:
                for part in parts:
                    if part.by_epoch:
                        x = part.tick(x, lr)
            row.append(x)
        rows.append(row)
        events = [event for part in parts for event in part.events(steps_per_epoch)]
    kept = sorted((event for event in events if event.at <= n), key=lambda event: event.at)
    return Plan("mmengine", np.array(rows, dtype=np.float64), events=tuple(kept))


class _Part:
    """One scheduler of the list on one group, with its own count of ticks."""

    def __init__(self, spec: Mapping[str, Any], steps_per_epoch: int, lr: float) -> None:
        kind = str(spec.get("type", "")).rpartition(".")[2]
        if kind not in KINDS:
            raise InputError(f"no simulation of the mmengine scheduler {kind!r}.", do=f"Known: {', '.join(KINDS)}.")
        params = dict(spec)
        self.by_epoch = bool(params.get("by_epoch", True))
        if self.by_epoch and params.get("convert_to_iter_based"):
            self.by_epoch = False
            for key in ("begin", "end", "T_max", "step_size"):
                if params.get(key) is not None:
                    params[key] *= steps_per_epoch
            if "milestones" in params:
                params["milestones"] = [m * steps_per_epoch for m in params["milestones"]]
        self.begin = int(params.get("begin") or 0)
        end = params.get("end")
        self.end = ENDLESS if end is None else int(end)
        try:
            self.rule = KINDS[kind](params, self.end - self.begin, lr)
        except KeyError as missing:
            raise InputError(f"{kind} needs {missing}.") from None
        self.seen = self.local = -1

    def tick(self, x: float, base: float) -> float:
        self.seen += 1
        if not self.begin <= self.seen < self.end:
            return x
        self.local += 1
        return self.rule.start(x, base) if self.local == 0 else self.rule.step(self.local, x, base)

    def events(self, steps_per_epoch: int) -> list[PlanEvent]:
        ticks = steps_per_epoch if self.by_epoch else 1
        moved = (replace(event, at=(event.at + self.begin) * ticks) for event in self.rule.events)
        return [event for event in moved if event.at <= self.end * ticks]
