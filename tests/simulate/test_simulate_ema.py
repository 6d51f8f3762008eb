"""EMA implementations: against torch and restatements of the others' code, and the table of KNOWLEDGE EMA-01."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheeltapper.errors import InputError
from wheeltapper.simulate.ema import (
    IMPLEMENTATIONS,
    decay_for_age,
    half_life,
    power_of_std,
    rescaled_decay,
    simulate_ema,
)


def weights_by_running(update: Callable[[np.ndarray, np.ndarray, int], np.ndarray], n: int) -> np.ndarray:
    """Share of the initial weights and of each update's weights in the average: run it on unit vectors."""
    average = np.eye(n + 1)[0]
    for t in range(n):
        average = update(average, np.eye(n + 1)[t + 1], t)
    return average


def check(kind: str, n: int, shares: np.ndarray, **params: Any) -> None:
    plan = simulate_ema(kind, n, **params)
    assert shares.sum() == pytest.approx(1.0)
    age = sum(w * (n - i) for i, w in enumerate(shares))  # index 0: initial weights, index i: after update i-1
    assert plan.mean_age == pytest.approx(age, rel=1e-9)
    assert plan.first_copy_weight == pytest.approx(shares[plan.first_copy_at + 1], rel=1e-9)


@given(st.integers(1, 40), st.integers(1, 7), st.floats(0.5, 0.999))
@settings(max_examples=40, deadline=None)
def test_averaged_model_equals_torch(n: int, every: int, decay: float) -> None:
    torch = pytest.importorskip("torch")
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    net = torch.nn.Linear(1, n + 1, bias=False).double()
    with torch.no_grad():
        net.weight[:] = torch.eye(n + 1, dtype=torch.float64)[0][:, None]
    average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(decay))
    for t in range(n):
        with torch.no_grad():
            net.weight[:] = torch.eye(n + 1, dtype=torch.float64)[t + 1][:, None]
        if t % every == 0:
            average.update_parameters(net)
    check("torch", n, average.module.weight.detach().numpy()[:, 0], every=every, decay=decay)


@given(st.integers(1, 60), st.integers(1, 5), st.integers(0, 12), st.booleans())
@settings(max_examples=60, deadline=None)
def test_ramps_equal_their_code(n: int, every: int, wait: int, warm: bool) -> None:
    def lerp(decay: float, a: np.ndarray, x: np.ndarray) -> np.ndarray:
        return decay * a + (1 - decay) * x

    state = {"step": 0, "ready": False, "k": 0}

    def ema_pytorch(a: np.ndarray, x: np.ndarray, t: int) -> np.ndarray:
        step = state["step"]
        state["step"] += 1
        if step % every:
            return a
        if step <= wait:
            return x
        if not state["ready"]:
            a, state["ready"] = x, True
        epoch = max(state["step"] - wait - 1, 0)
        value = 1 - (1 + epoch) ** -0.75
        return lerp(0.0 if epoch <= 0 else min(max(value, 0.0), 0.99), a, x)

    shares = weights_by_running(ema_pytorch, n)
    check("ema_pytorch", n, shares, every=every, update_after_step=wait, power=0.75, beta=0.99)

    def diffusers(a: np.ndarray, x: np.ndarray, t: int) -> np.ndarray:
        step = max(0, t + 1 - wait - 1)
        value = 0.0
        if step > 0:
            ramp = 1 - (1 + step) ** -(2 / 3) if warm else (1 + step) / (10 + step)
            value = max(min(ramp, 0.9), 0.1)
        return lerp(value, a, x)

    check(
        "diffusers",
        n,
        weights_by_running(diffusers, n),
        update_after_step=wait,
        use_ema_warmup=warm,
        decay=0.9,
        min_decay=0.1,
    )

    def sedd(a: np.ndarray, x: np.ndarray, t: int) -> np.ndarray:
        k = t + 1
        return lerp(min(0.95, (1 + k) / (10 + k)), a, x)

    check("sedd", n, weights_by_running(sedd, n), decay=0.95)

    def timm(a: np.ndarray, x: np.ndarray, t: int) -> np.ndarray:
        step = max(0, t + 1 - wait - 1)
        ramp = max(min(1 - (1 + step) ** -(2 / 3), 0.97), 0.0) if warm else 0.97
        return lerp(0.0 if step <= 0 else ramp, a, x)

    check("timm_v3", n, weights_by_running(timm, n), decay=0.97, use_warmup=warm, update_after_step=wait)


@given(st.integers(1, 60), st.sampled_from([16, 512]))
@settings(max_examples=30, deadline=None)
def test_diffusion_averages_equal_their_code(n: int, batch: int) -> None:
    def edm(a: np.ndarray, x: np.ndarray, t: int) -> np.ndarray:
        half = min(0.5 * 1000, t * batch * 0.05)
        beta = 0.5 ** (batch / max(half, 1e-8))
        return x + beta * (a - x)

    check("edm", n, weights_by_running(edm, n), batch_size=batch, ema_halflife_kimg=0.5)

    def edm2(a: np.ndarray, x: np.ndarray, t: int) -> np.ndarray:
        beta = (1 - batch / ((t + 1) * batch)) ** (power_of_std(0.1) + 1)
        return a + (1 - beta) * (x - a)

    check("edm2", n, weights_by_running(edm2, n), std=0.1)


def test_table_of_ema_01() -> None:
    table = {
        0.999: (0.61, 0.37, 0.14),
        0.9995: (0.78, 0.61, 0.37),
        0.9998: (0.90, 0.82, 0.67),
        0.9999: (0.95, 0.90, 0.82),
    }
    for decay, row in table.items():
        got = [simulate_ema("timm_v2", n, decay=decay).first_copy_weight for n in (500, 1000, 2000)]
        assert got == pytest.approx(row, abs=0.006)
    assert (round(half_life(0.9999)), round(half_life(0.999))) == (6931, 693)


def test_the_ramp_makes_9999_young_in_diffusers() -> None:
    """EMA-02: .9999 after 2000 updates is 82 % initial weights in timm, but 200 updates old in diffusers."""
    assert simulate_ema("diffusers", 2000, decay=0.9999).mean_age == pytest.approx(200, rel=0.02)
    assert simulate_ema("ema_pytorch", 2000, update_after_step=0, beta=0.9999).mean_age == pytest.approx(150, rel=0.05)
    assert simulate_ema("timm_v2", 2000, decay=0.9999).first_copy_weight == pytest.approx(0.8187, abs=1e-3)


def test_oracle_numbers_of_the_cases() -> None:
    """CASES §3, case 004: every tenth batch of 625, decay .9999: 93.9 % first-step weights at epoch 10."""
    batches = [625 * epoch + batch for epoch in range(60) for batch in range(0, 625, 10)]
    ten = simulate_ema("torch", 6250, at=batches[:630], decay=0.9999)
    assert round(ten.first_copy_weight, 3) == 0.939
    assert ten.first_copy_at == 0
    sixty = simulate_ema("torch", 37500, at=batches, decay=0.9999)
    assert round(sixty.first_copy_weight, 3) == 0.685
    assert sixty.horizon == pytest.approx(99_990, rel=0.01)  # against 37,500 updates in all
    assert sixty.age_share > 0.5
    assert sixty.buffers == "copied"


def test_case_001_ramp() -> None:
    """traiNNer: power 0.75 gives .9944 at 1k and reaches .999 at 10k (CASES 1.1)."""
    plan = simulate_ema("ema_pytorch", 12_000, update_after_step=0, power=0.75, beta=0.999)
    assert plan.decays[1000] == pytest.approx(0.9944, abs=1e-4)
    assert plan.decays[9990] < 0.999
    assert plan.decays[10_001] == 0.999


def test_edm2_widths() -> None:
    """EMA-13: σ_rel .05/.10/.15 are γ 16.97/6.94/3.56 and mean ages 5.3/11.2/18.0 % of training."""
    for std, gamma, share in ((0.05, 16.97, 0.053), (0.10, 6.94, 0.112), (0.15, 3.56, 0.180)):
        assert power_of_std(std) == pytest.approx(gamma, abs=0.005)
        assert simulate_ema("edm2", 20_000, std=std).age_share == pytest.approx(share, abs=5e-4)


def test_small_answers() -> None:
    assert rescaled_decay(0.999, 4) == pytest.approx(0.996006, abs=1e-6)
    assert decay_for_age(99.0, every=1) == 0.99
    assert simulate_ema("torch_swa", 10).first_copy_weight == pytest.approx(0.1)
    assert simulate_ema("ultralytics", 2000).decays[-1] == pytest.approx(0.9999 * (1 - math.exp(-1)))
    assert simulate_ema("torch", 0).mean_age == 0.0
    with pytest.raises(InputError, match="no EMA implementation"):
        simulate_ema("nothing", 5)
    with pytest.raises(InputError, match="cannot be built"):
        simulate_ema("edm", 5)
    assert {policy for _, policy in IMPLEMENTATIONS.values()} == {"copied", "averaged", "frozen", "live"}
