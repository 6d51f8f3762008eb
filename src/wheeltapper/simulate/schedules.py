"""`simulate(name, n, lr=..., **parameters)`: one door to every schedule.

Names are `torch.StepLR`, `hf.linear`, `timm.cosine`, `mmcv.step` ... (`names()` lists them); torch's classes
may be named without the prefix. Compound torch schedulers take their parts as mappings with a `type`.

>>> plan = simulate("CosineAnnealingLR", 20, lr=1.0, T_max=10)
>>> [round(float(v), 3) for v in plan.lr()[[0, 5, 10, 15, 20]]]
[1.0, 0.5, 0.0, 0.5, 1.0]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wheeltapper.errors import InputError
from wheeltapper.simulate import compound, hf, loops, mmengine, rules, timm
from wheeltapper.simulate.plan import Plan, PlanUnit, refuse_endless
from wheeltapper.simulate.rules import Rule

TORCH: dict[str, Callable[..., Rule]] = {
    "LambdaLR": rules.lambda_lr,
    "MultiplicativeLR": rules.multiplicative_lr,
    "StepLR": rules.step_lr,
    "MultiStepLR": rules.multi_step_lr,
    "ConstantLR": rules.constant_lr,
    "LinearLR": rules.linear_lr,
    "ExponentialLR": rules.exponential_lr,
    "PolynomialLR": rules.polynomial_lr,
    "CosineAnnealingLR": rules.cosine_annealing_lr,
    "CosineAnnealingWarmRestarts": rules.cosine_warm_restarts,
    "CyclicLR": rules.cyclic_lr,
    "OneCycleLR": rules.one_cycle_lr,
    "ReduceLROnPlateau": compound.reduce_on_plateau,
    "SequentialLR": compound.sequential_lr,
    "ChainedScheduler": compound.chained_scheduler,
}
TIMM: dict[str, Callable[..., Rule]] = {
    "cosine": timm.cosine,
    "tanh": timm.tanh,
    "step": timm.step,
    "multistep": timm.multistep,
    "poly": timm.poly,
    "plateau": timm.plateau,
}
BASICSR: dict[str, Callable[..., Rule]] = {
    **{name: make for name, make in TORCH.items() if name not in ("MultiStepLR", "ReduceLROnPlateau")},
    "MultiStepLR": loops.multi_step_restart,
    "MultiStepRestartLR": loops.multi_step_restart,
    "CosineAnnealingRestartLR": loops.cosine_restart,
}
SHAPES: dict[str, Callable[..., hf.Shape]] = {
    "hf.constant": hf.constant,
    "hf.constant_with_warmup": hf.constant_with_warmup,
    "hf.linear": hf.linear,
    "hf.cosine": hf.cosine,
    "hf.cosine_with_restarts": hf.cosine_with_restarts,
    "hf.cosine_with_min_lr": hf.cosine_with_min_lr,
    "hf.cosine_warmup_with_min_lr": hf.cosine_warmup_with_min_lr,
    "hf.polynomial": hf.polynomial,
    "hf.inverse_sqrt": hf.inverse_sqrt,
    "hf.warmup_stable_decay": hf.warmup_stable_decay,
    "nanogpt": loops.nanogpt,
    "megatron": loops.megatron,
    "ultralytics": loops.ultralytics,
    "mmcv": loops.mmcv,
    "sedd": loops.sedd,
    "edm": loops.edm,
    "edm2": loops.edm2,
    "openai": loops.openai_anneal,
}
# Parameters that torch takes once or once per parameter group.
PER_GROUP = {"max_lr", "base_lr", "min_lr", "base_momentum", "max_momentum"}


def names() -> list[str]:
    """Every schedule that can be simulated."""
    return sorted(
        [f"torch.{name}" for name in TORCH]
        + [f"timm.{name}" for name in TIMM]
        + [f"basicsr.{name}" for name in BASICSR]
        + ["hf.reduce_lr_on_plateau", "mmengine"]
        + list(SHAPES)
    )


def simulate(name: str, n: int, *, lr: float | Sequence[float] = 1.0, unit: PlanUnit = "steps", **params: Any) -> Plan:
    """What the schedule does in n ticks, for groups whose base LRs are `lr`."""
    if n < 0:
        raise InputError(f"cannot simulate {n} ticks.", do="Give a length of 0 or more.")
    lrs = [float(lr)] if isinstance(lr, (int, float)) else [float(each) for each in lr]
    refuse_endless(n * len(lrs))
    if not lrs:
        raise InputError("no parameter group.", do="Give one base LR per group.")
    family, _, kind = name.partition(".")
    if name in SHAPES:
        return _shape(name, SHAPES[name], n, lrs, unit, params)
    if name == "mmengine":
        return mmengine.simulate(lrs, n, **_checked("mmengine", mmengine.simulate, params))
    if family == "timm" and kind in TIMM:
        scale = np.atleast_2d(np.asarray(params.pop("lr_scale", 1.0), dtype=np.float64)).T
        plan = _rules(name, TIMM[kind], n, lrs, unit, params)
        return replace(plan, values=plan.values * scale) if scale.size > 1 or scale.flat[0] != 1.0 else plan
    if family == "basicsr" and kind in BASICSR:
        warm: dict[str, Any] = {key: params.pop(key) for key in ("warmup_iter", "after_update") if key in params}
        return _rules(name, _warmed(BASICSR[kind], warm), n, lrs, unit, params, check=BASICSR[kind])
    plain = "ReduceLROnPlateau" if name == "hf.reduce_lr_on_plateau" else kind if family == "torch" else name
    if plain in TORCH:
        return _rules(name, TORCH[plain], n, lrs, unit, params)
    raise InputError(f"no schedule named {name!r}.", do="wheeltapper.simulate.schedules.names() lists them.")


def torch_rule(spec: Mapping[str, Any], group: int = 0) -> Rule:
    """A torch scheduler from its parameters and a `type`, as configs write it."""
    params = dict(spec)
    kind = str(params.pop("type", ""))
    if kind not in TORCH:
        raise InputError(f"no torch scheduler named {kind!r}.", do=f"One of: {', '.join(TORCH)}.")
    return _build(TORCH[kind], _checked(kind, TORCH[kind], params), group)


def _warmed(make: Callable[..., Rule], warm: dict[str, Any]) -> Callable[..., Rule]:
    return lambda **params: loops.basicsr_warmup(make(**params), **warm)


def _build(make: Callable[..., Rule], params: dict[str, Any], group: int) -> Rule:
    chosen = dict(params)
    for key, value in params.items():
        if key in PER_GROUP and isinstance(value, (list, tuple)):
            if group >= len(value):
                raise InputError(f"{key} has {len(value)} values for more groups than that.")
            chosen[key] = value[group]
    parts = chosen.pop("schedulers", None)
    if parts is not None:
        chosen["rules"] = [torch_rule(part, group) for part in parts]
    return make(**chosen)


def _rules(
    name: str,
    make: Callable[..., Rule],
    n: int,
    lrs: list[float],
    unit: PlanUnit,
    params: dict[str, Any],
    check: Callable[..., Rule] | None = None,
) -> Plan:
    given = _checked(name, check or make, params)
    if "metrics" in given:  # a plateau plan is known as far as its metric is
        n = min(n, len(given["metrics"]))
    return compound.run_rules(name, lambda group: _build(make, given, group), lrs, n, unit)


def _shape(
    name: str,
    make: Callable[..., hf.Shape],
    n: int,
    lrs: list[float],
    unit: PlanUnit,
    params: dict[str, Any],
) -> Plan:
    given = _checked(name, make, params)
    # A minimum LR is absolute: shapes that have one need the base LR of each group to express it as a factor.
    wants_lr = "lr" in inspect.signature(make).parameters
    rows, shape = [], None
    for lr in lrs:
        if shape is None or wants_lr:
            shape = make(**given, lr=lr) if wants_lr else make(**given)
            factors = np.array([shape.factor(t) for t in range(n + 1)], dtype=np.float64)
        rows.append(lr * factors)
    assert shape is not None
    events = tuple(sorted((e for e in shape.events if e.at <= n), key=lambda event: event.at))
    return Plan(name, np.array(rows), unit, shape.total, None, events)


def _checked(name: str, make: Callable[..., Any], params: dict[str, Any]) -> dict[str, Any]:
    """The parameters, or a sentence about the one that does not exist or is missing."""
    known = dict(inspect.signature(make).parameters)
    for internal in ("lr", "lrs", "n"):
        known.pop(internal, None)
    if "rules" in known:
        known["schedulers"] = known.pop("rules")
    unknown = [key for key in params if key not in known]
    if unknown:
        raise InputError(f"{name} has no parameter {unknown[0]!r}.", do=f"It takes: {', '.join(known) or 'none'}.")
    missing = [key for key, p in known.items() if p.default is inspect.Parameter.empty and key not in params]
    if missing:
        raise InputError(f"{name} needs {missing[0]!r}.")
    return params
