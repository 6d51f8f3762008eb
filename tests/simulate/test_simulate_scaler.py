"""The scalers: against torch, against re-statements of the other projects' code, and by brute force."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheeltapper.errors import InputError
from wheeltapper.simulate.scaler import (
    DEEPSPEED,
    FAIRSEQ,
    MEGATRON,
    TORCH,
    Scaler,
    check_scale_series,
    openai_skips,
    read_window_mean,
    scale_falls,
    scale_history,
    skip_bounds,
)

BITS = st.lists(st.booleans(), max_size=80)


def deepspeed(bits: list[bool], init: float, window: int, floor: float, shift: int) -> list[float]:
    """deepspeed/runtime/fp16/loss_scaler.py, restated; the list ends where it raises."""
    scale, last, left = init, -1, shift
    out = [scale]
    for it, overflow in enumerate(bits):
        if overflow:
            if shift == 1 or left == 1:
                if scale == floor:
                    return out
                scale = max(scale / 2, floor)
            else:
                left -= 1
            last = it
        else:
            stable = it - last - 1
            if stable > 0 and stable % window == 0:
                left = shift
                scale *= 2
        out.append(scale)
    return out


def fairseq(bits: list[bool], init: float, window: int, floor: float) -> list[float]:
    scale, last = init, -1
    out = [scale]
    for it, overflow in enumerate(bits):
        if overflow:
            last = it
            scale /= 2
            if scale <= floor:
                return out
        elif (it - last) % window == 0:
            scale *= 2
        out.append(scale)
    return out


def megatron(bits: list[bool], init: float, interval: int, floor: float, hysteresis: int) -> list[float]:
    scale, grown, left = init, 0, hysteresis
    out = [scale]
    for overflow in bits:
        if overflow:
            grown, left = 0, left - 1
            if left <= 0:
                scale = max(scale * 0.5, floor)
        else:
            grown += 1
            if grown == interval:
                grown, left, scale = 0, hysteresis, scale * 2
        out.append(scale)
    return out


def ours(scaler: Scaler, bits: list[bool]) -> list[float]:
    return list(scale_history(scaler, len(bits), [i for i, bad in enumerate(bits) if bad]).values)


@given(BITS, st.integers(1, 6))
@settings(max_examples=12, deadline=None)
def test_torch_scaler_equals_torch(bits: list[bool], interval: int) -> None:
    torch = pytest.importorskip("torch")
    scaler = torch.amp.GradScaler("cpu", growth_interval=interval)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scales = []
    for bad in bits:
        loss = (weight * (math.inf if bad else 1.0)).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        scales.append(scaler.get_scale())
    assert ours(TORCH.having(interval=interval), bits)[1:] == scales


@given(BITS, st.integers(1, 6), st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_the_other_scalers_equal_their_code(bits: list[bool], interval: int, hysteresis: int) -> None:
    for floor in (1.0, 2.0**12):
        here = DEEPSPEED.having(interval=interval, hysteresis=hysteresis, floor=floor)
        assert ours(here, bits) == deepspeed(bits, 2.0**16, interval, floor, hysteresis)
        here = MEGATRON.having(interval=interval, hysteresis=hysteresis, floor=floor, init=2.0**16)
        assert ours(here, bits) == megatron(bits, 2.0**16, interval, floor, hysteresis)
        here = FAIRSEQ.having(interval=interval, floor=floor)
        assert ours(here, bits) == fairseq(bits, 2.0**15, interval, floor)


def test_oracle_numbers_of_the_cases() -> None:
    """CASES §3: 2^21 from iteration 10000 to 11999 is what a scaler without a single overflow shows."""
    history = scale_history(TORCH, 12_000).values
    assert set(history[10_000:12_000]) == {2.0**21}
    assert history[12_000] == 2.0**22
    assert scale_history(TORCH, 1, [0]).values[1] == 32768
    for n in (0, 1999, 2000, 77_777):
        assert scale_history(TORCH, n).values[-1] == 2.0 ** (16 + n // 2000)


@pytest.mark.parametrize(
    ("updates", "scale", "low", "high"),
    [(10_000, 2.0**21, 0, 0), (10_000, 2.0**16, 3, 4), (10_000, 1.0, 16, 20), (100_000, 2.0**20, 23, 45)],
)
def test_skip_bounds_of_amp_03(updates: int, scale: float, low: int, high: int) -> None:
    bounds = skip_bounds(TORCH, updates, scale)
    assert (bounds.low, bounds.high, bounds.possible) == (low, high, True)


@pytest.mark.parametrize("interval", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("base", "hysteresis"),
    [(TORCH, 1), (MEGATRON, 1), (MEGATRON, 2), (MEGATRON, 3), (DEEPSPEED, 1), (DEEPSPEED, 2), (DEEPSPEED, 3)],
)
def test_skip_bounds_by_brute_force(base: Scaler, hysteresis: int, interval: int) -> None:
    """Every history of up to 11 updates: the bounds are exactly the least and most skips that give the scale."""
    scaler = base.having(interval=interval, hysteresis=hysteresis, floor=None)
    for updates in (1, 5, 11):
        counts = defaultdict(set)
        for bits in itertools.product((False, True), repeat=updates):
            history = ours(scaler, list(bits))
            counts[history[-1]].add(sum(bits))
        for k in range(-updates - 1, updates + 2):
            scale = scaler.init * 2.0**k
            bounds = skip_bounds(scaler, updates, scale)
            assert bounds.possible == (scale in counts), (k, updates)
            if bounds.possible:
                assert (bounds.low, bounds.high) == (min(counts[scale]), max(counts[scale])), (k, updates)


def test_skip_bounds_with_a_floor_that_swallows() -> None:
    scaler = MEGATRON.having(init=4.0, interval=2, hysteresis=2, floor=1.0)
    counts = defaultdict(set)
    for bits in itertools.product((False, True), repeat=11):
        counts[ours(scaler, list(bits))[-1]].add(sum(bits))
    for scale, seen in counts.items():
        bounds = skip_bounds(scaler, 11, scale)
        assert bounds.low <= min(seen)
        assert bounds.high >= max(seen)
    assert skip_bounds(scaler, 11, 1.0).high == max(counts[1.0]) == 11


def test_impossible_scales_are_said() -> None:
    assert not skip_bounds(TORCH, 10_000, 2.0**22).possible
    assert not skip_bounds(TORCH, 100, 3e4).possible
    assert "power of two" in skip_bounds(TORCH, 100, 3e4).why
    with pytest.raises(InputError):
        skip_bounds(TORCH.having(growth=1.5), 10, 1.0)


@given(st.lists(st.booleans(), min_size=30, max_size=120), st.integers(2, 7), st.integers(1, 17))
@settings(max_examples=80, deadline=None)
def test_a_true_series_is_always_possible(bits: list[bool], interval: int, every: int) -> None:
    for base, hysteresis in ((TORCH, 1), (DEEPSPEED, 2), (MEGATRON, 2)):
        scaler = base.having(interval=interval, hysteresis=hysteresis, floor=None)
        values = ours(scaler, bits)
        at = np.arange(0, len(values), every)
        check = check_scale_series(scaler, at, [values[i] for i in at])
        assert check.possible
        assert check.low <= sum(bits[: at[-1]]) <= check.high


def test_a_reset_and_a_wrong_clock_are_found() -> None:
    at = np.arange(0, 8001, 1000)
    grown = [2.0 ** (16 + t // 2000) for t in at]
    assert check_scale_series(TORCH, at, grown).possible
    assert check_scale_series(TORCH, at, grown).high == 0
    resumed = [*grown[:6], 2.0**16, 2.0**16, 2.0**17]  # 2^18 at 5000, initial again at 6000
    # A fall by two in a thousand updates may be two overflows, so it is possible; back by growth is not.
    assert check_scale_series(TORCH, at, resumed).low == 2
    micro = check_scale_series(TORCH, at / 8, grown)  # the log counted something eight times slower
    assert not micro.possible
    assert micro.breaks
    back_up = check_scale_series(TORCH, [0, 100, 200], [2.0**16, 2.0**12, 2.0**16])
    assert back_up.resets == (200.0,)


def test_openai_scaler_counts_exactly() -> None:
    lg = 20.0
    for step in range(500):
        lg = lg - 1 if step in (3, 4, 90) else lg + 1e-3
    assert openai_skips(lg, 500) == pytest.approx(3.0)


def test_window_means() -> None:
    constant = read_window_mean(2.0972e6)  # printed %.4e of 2^21 = 2097152
    assert constant is not None
    assert constant.constant
    assert constant.low == 2.0**21
    assert read_window_mean(1.0) is not None
    changed = read_window_mean(2.0**16 * 1.25)
    assert changed is not None
    assert (changed.constant, changed.grew_after, changed.fell_after) == (False, 0.75, 0.25)
    assert read_window_mean(float("nan")) is None


def test_falls() -> None:
    # BLOOM tr8b: 1048576 to 32768 within 7 iterations, and it stays down.
    at = [17000, 17061, 17062, 17063, 17064, 17065, 17068]
    values = [2.0**20, 2.0**20, 2.0**19, 2.0**18, 2.0**17, 2.0**16, 2.0**15]
    (fall,) = scale_falls(MEGATRON.having(init=2.0**32), at, values)
    assert fall.halvings == 5
    assert (fall.start, fall.end, fall.search) == (17061, 17068, False)
    assert fall.collapse
    # The search at the start is normal: 2^32 down to 2^14 in the first iterations (AMP-06).
    (search,) = scale_falls(MEGATRON, [1, 10, 100, 200], [2.0**32, 2.0**23, 2.0**14, 2.0**14])
    assert search.search
    assert not search.collapse
    # One halving every few thousand updates is the steady state (AMP-05).
    steady = scale_falls(
        TORCH, [0, 2000, 2500, 4500, 4600, 6600], [2.0**16, 2.0**17, 2.0**16, 2.0**17, 2.0**16, 2.0**17]
    )
    assert len(steady) == 2
    assert not any(f.collapse for f in steady)
    # bf16: the scaler is off and the log shows 1.0 on every line (CASES 1.1).
    assert scale_falls(TORCH, [100, 200, 300], [1.0, 1.0, 1.0]) == []
    (dead,) = scale_falls(TORCH, [0, 10, 20, 30], [65536.0, 64.0, 1.0, 0.0078125])
    assert dead.collapse
