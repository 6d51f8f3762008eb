"""The simulators against torch itself, over random configurations, to 1e-12."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wheeltapper.errors import InputError
from wheeltapper.simulate.schedules import simulate

torch = pytest.importorskip("torch")
lr_scheduler = torch.optim.lr_scheduler

SETTINGS = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LRS = st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=3)
SMALL = st.integers(1, 40)
GAMMA = st.floats(0.05, 1.2)


def optimizer(lrs: list[float]) -> Any:
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr} for lr in lrs]
    return torch.optim.SGD(groups, lr=lrs[0], momentum=0.7)


def make(opt: Any, spec: dict[str, Any]) -> Any:
    params = dict(spec)
    kind = params.pop("type")
    if kind in ("SequentialLR", "ChainedScheduler"):
        parts = [make(opt, part) for part in params.pop("schedulers")]
        return (
            lr_scheduler.SequentialLR(opt, parts, **params)
            if kind == "SequentialLR"
            else lr_scheduler.ChainedScheduler(parts)
        )
    if kind in ("LambdaLR", "MultiplicativeLR"):
        values = params.pop("values")
        params["lr_lambda"] = lambda t: values[t]
    return getattr(lr_scheduler, kind)(opt, **params)


def real(lrs: list[float], spec: dict[str, Any], n: int, metrics: list[float] | None = None) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opt = optimizer(lrs)
        scheduler = make(opt, spec)
        lr = [[g["lr"] for g in opt.param_groups]]
        momentum = [[g["momentum"] for g in opt.param_groups]]
        for t in range(n):
            opt.step()
            scheduler.step(metrics[t]) if metrics is not None else scheduler.step()
            lr.append([g["lr"] for g in opt.param_groups])
            momentum.append([g["momentum"] for g in opt.param_groups])
    return np.array(lr).T, np.array(momentum).T


def same(lrs: list[float], spec: dict[str, Any], n: int) -> None:
    params = dict(spec)
    plan = simulate(params.pop("type"), n, lr=lrs, **params)
    lr, momentum = real(lrs, spec, n)
    np.testing.assert_allclose(plan.values, lr, rtol=1e-12, atol=0)
    if plan.momentum is not None:
        np.testing.assert_allclose(plan.momentum, momentum, rtol=1e-12, atol=0)


def linear(draw: Any) -> dict[str, Any]:
    return {
        "type": "LinearLR",
        "start_factor": draw(st.floats(0.01, 1.0)),
        "end_factor": draw(st.floats(0.01, 1.0)),
        "total_iters": draw(SMALL),
    }


def cosine(draw: Any) -> dict[str, Any]:
    return {"type": "CosineAnnealingLR", "T_max": draw(SMALL), "eta_min": draw(st.sampled_from([0.0, 1e-7, 1e-3]))}


SIMPLE = {
    "StepLR": lambda d: {"type": "StepLR", "step_size": d(SMALL), "gamma": d(GAMMA)},
    "MultiStepLR": lambda d: {
        "type": "MultiStepLR",
        "milestones": d(st.lists(st.integers(0, 60), max_size=5)),
        "gamma": d(GAMMA),
    },
    "ConstantLR": lambda d: {"type": "ConstantLR", "factor": d(st.floats(0.01, 1)), "total_iters": d(SMALL)},
    "LinearLR": linear,
    "ExponentialLR": lambda d: {"type": "ExponentialLR", "gamma": d(GAMMA)},
    "PolynomialLR": lambda d: {"type": "PolynomialLR", "total_iters": d(SMALL), "power": d(st.floats(0.3, 3))},
    "CosineAnnealingLR": cosine,
    "CosineAnnealingWarmRestarts": lambda d: {
        "type": "CosineAnnealingWarmRestarts",
        "T_0": d(SMALL),
        "T_mult": d(st.integers(1, 3)),
        "eta_min": d(st.sampled_from([0.0, 1e-5])),
    },
    "LambdaLR": lambda _: {"type": "LambdaLR", "values": [0.9**t + 0.01 * (t % 7) for t in range(200)]},
    "MultiplicativeLR": lambda _: {"type": "MultiplicativeLR", "values": [1 - 0.1 * (t % 4) for t in range(200)]},
}


@pytest.mark.parametrize("kind", SIMPLE)
@given(data=st.data())
@SETTINGS
def test_each_scheduler_equals_torch(kind: str, data: Any) -> None:
    same(data.draw(LRS), SIMPLE[kind](data.draw), data.draw(st.integers(0, 90)))


@given(data=st.data())
@SETTINGS
def test_one_cycle_equals_torch(data: Any) -> None:
    lrs = data.draw(LRS)
    total = data.draw(st.integers(5, 90))
    spec: dict[str, Any] = {
        "type": "OneCycleLR",
        "max_lr": [lr * 2 for lr in lrs],
        "total_steps": total,
        "pct_start": data.draw(st.floats(0.25, 0.45)),
        "anneal_strategy": data.draw(st.sampled_from(["cos", "linear"])),
        "three_phase": data.draw(st.booleans()),
        "div_factor": data.draw(st.floats(1, 50)),
        "final_div_factor": data.draw(st.floats(1, 1e5)),
        "cycle_momentum": data.draw(st.booleans()),
        "base_momentum": 0.8,
        "max_momentum": [0.9] * len(lrs),
    }
    same(lrs, spec, data.draw(st.integers(0, total)))


@given(data=st.data())
@SETTINGS
def test_cyclic_equals_torch(data: Any) -> None:
    lrs = data.draw(LRS)
    spec = {
        "type": "CyclicLR",
        "base_lr": [lr / 3 for lr in lrs],
        "max_lr": lrs,
        "step_size_up": data.draw(SMALL),
        "step_size_down": data.draw(st.none() | SMALL),
        "mode": data.draw(st.sampled_from(["triangular", "triangular2", "exp_range"])),
        "gamma": data.draw(st.floats(0.9, 1.0)),
    }
    same(lrs, spec, data.draw(st.integers(0, 90)))


@given(data=st.data())
@SETTINGS
def test_sequential_equals_torch(data: Any) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(SIMPLE)), min_size=1, max_size=3))
    cuts = sorted(data.draw(st.sets(st.integers(1, 60), min_size=len(kinds) - 1, max_size=len(kinds) - 1)))
    parts = [SIMPLE[kind](data.draw) for kind in kinds]
    same(data.draw(LRS), {"type": "SequentialLR", "schedulers": parts, "milestones": cuts}, 80)


@given(data=st.data())
@SETTINGS
def test_chained_equals_torch(data: Any) -> None:
    kinds = data.draw(
        st.lists(
            st.sampled_from(["StepLR", "ConstantLR", "LinearLR", "ExponentialLR", "MultiStepLR"]),
            min_size=1,
            max_size=3,
        )
    )
    parts = [SIMPLE[kind](data.draw) for kind in kinds]
    same(data.draw(LRS), {"type": "ChainedScheduler", "schedulers": parts}, 60)


@given(data=st.data())
@SETTINGS
def test_plateau_equals_torch(data: Any) -> None:
    lrs = data.draw(LRS)
    values = st.floats(-100, 100) | st.just(float("nan")) | st.integers(0, 5).map(float)
    metrics = data.draw(st.lists(values, min_size=1, max_size=60))
    params = {
        "mode": data.draw(st.sampled_from(["min", "max"])),
        "factor": data.draw(st.floats(0.05, 0.9)),
        "patience": data.draw(st.integers(0, 6)),
        "threshold": data.draw(st.sampled_from([1e-4, 0.0, 0.1])),
        "threshold_mode": data.draw(st.sampled_from(["rel", "abs"])),
        "cooldown": data.draw(st.integers(0, 4)),
        "min_lr": [lr / 50 for lr in lrs],
    }
    plan = simulate("ReduceLROnPlateau", len(metrics), lr=lrs, metrics=metrics, **params)
    lr, _ = real(lrs, {"type": "ReduceLROnPlateau", **params}, len(metrics), metrics)
    np.testing.assert_allclose(plan.values, lr, rtol=1e-12, atol=0)


def test_a_long_cosine_keeps_torchs_own_rounding() -> None:
    """Past T_max the recursion amplifies rounding; a closed form would be off by far more than 1e-12 there."""
    same([0.1], {"type": "CosineAnnealingLR", "T_max": 2000, "eta_min": 1e-5}, 6100)


def test_one_cycle_overrun_is_where_torch_raises() -> None:
    lrs, spec = [0.1], {"type": "OneCycleLR", "max_lr": 1.0, "total_steps": 20}
    plan = simulate("OneCycleLR", 25, lr=lrs, max_lr=1.0, total_steps=20)
    overrun = plan.first("overrun")
    assert overrun is not None
    assert overrun.at == 21
    assert np.isfinite(plan.lr()[:21]).all()
    assert np.isnan(plan.lr()[21:]).all()
    real(lrs, spec, 20)
    with pytest.raises(ValueError, match="Tried to step 21 times"):
        real(lrs, spec, 21)
    assert simulate("OneCycleLR", 20, lr=lrs, max_lr=1.0, total_steps=20).first("overrun") is None


def test_defaults_that_surprise() -> None:
    """SCH-11: five ticks is all that PolynomialLR() and LinearLR() last; cosine climbs again (SCH-02)."""
    assert simulate("PolynomialLR", 8, lr=1.0).lr()[5:].tolist() == [0.0] * 4
    assert simulate("LinearLR", 8, lr=1.0).lr()[0] == pytest.approx(1 / 3)
    assert simulate("CosineAnnealingLR", 20, lr=1.0, T_max=10).lr()[[0, 10, 20]] == pytest.approx([1, 0, 1], abs=1e-12)
    # SCH-10a: relative threshold and a negative metric that slowly gets worse: the LR never falls.
    rising = [-10 + 0.00025 * i for i in range(100)]
    assert simulate("ReduceLROnPlateau", 100, lr=1.0, metrics=rising).lr()[-1] == 1.0
    # SCH-10b: NaN counts as bad.
    nan = [float("nan")] * 12
    assert simulate("ReduceLROnPlateau", 12, lr=1.0, metrics=nan, patience=2).lr()[-1] == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("name", "params", "says"),
    [
        ("CosineAnnealingLR", {"Tmax": 10}, "no parameter 'Tmax'"),
        ("CosineAnnealingLR", {}, "needs 'T_max'"),
        ("CosineAnealingLR", {}, "no schedule named"),
        ("LinearLR", {"start_factor": 0.0}, "start_factor"),
        ("OneCycleLR", {"max_lr": 1.0}, "total_steps"),
        ("SequentialLR", {"schedulers": [{"type": "LinearLR"}], "milestones": [3]}, "one milestone fewer"),
        ("CosineAnnealingWarmRestarts", {"T_0": 2.5}, "whole T_0"),
    ],
)
def test_what_cannot_be_built_is_said(name: str, params: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        simulate(name, 5, **params)
