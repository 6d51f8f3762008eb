"""Whatever a log holds, the readers of learning rates and scales answer; and the examples in the code are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wheeltapper.simulate
from wheeltapper.simulate.compare_lr import compare_lr
from wheeltapper.simulate.lr_shape import shape_of_lr
from wheeltapper.simulate.scaler import TORCH, check_scale_series, read_window_mean, scale_falls, skip_bounds
from wheeltapper.simulate.schedules import simulate

ODD = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, 1e-300, 1e300, 0.1, 0.01, -1.0])
POINTS = st.lists(st.tuples(st.floats(-10, 1000) | st.integers(0, 30).map(float), ODD), max_size=40)
PLANS = [
    simulate("hf.cosine", 200, lr=0.1, num_training_steps=200, num_warmup_steps=20),
    simulate("OneCycleLR", 250, max_lr=0.1, total_steps=200),  # NaN after its overrun
    simulate("timm.step", 30, lr=0.1, unit="epochs", decay_t=10, decay_rate=0.1),
]


@given(POINTS)
@settings(max_examples=100, deadline=None)
def test_any_series_has_a_shape(points: list[tuple[float, float]]) -> None:
    at, values = [p[0] for p in points], [p[1] for p in points]
    shape = shape_of_lr(at, values)
    assert shape.n <= len(points)
    assert isinstance(str(shape), str)


@given(POINTS, st.sampled_from(PLANS), st.sampled_from(["step", "epoch", "micro_step", "sample"]))
@settings(max_examples=100, deadline=None)
def test_any_series_can_be_compared(points: list[tuple[float, float]], plan: Any, clock: Any) -> None:
    at, values = [p[0] for p in points], [p[1] for p in points]
    match = compare_lr(plan, at, values, clock, steps_per_epoch=10, accumulation=2, factors={"world size": 4})
    assert match.why


@given(POINTS)
@settings(max_examples=100, deadline=None)
def test_any_scale_can_be_read(points: list[tuple[float, float]]) -> None:
    at, values = [p[0] for p in points], [p[1] for p in points]
    check_scale_series(TORCH, at, values)
    scale_falls(TORCH, at, values)
    for value in values:
        read_window_mean(value)
        skip_bounds(TORCH, 100, value)


def test_random_noise_is_not_given_a_schedule() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        shape = shape_of_lr(np.arange(60), rng.uniform(0.01, 0.1, 60))
        assert shape.kind == "irregular", shape


@pytest.mark.parametrize("module", [m.name for m in pkgutil.iter_modules(wheeltapper.simulate.__path__)])
def test_examples_in_the_code(module: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(f"wheeltapper.simulate.{module}"))
    assert failed == 0
