"""HF, timm, mmengine against tables made with the projects' own code; loops against their formulas."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wheeltapper.errors import InputError
from wheeltapper.simulate.plan import Plan, held, logged, shifted, strided
from wheeltapper.simulate.schedules import names, simulate

ROWS = json.loads((Path(__file__).parent / "oracle_schedules.json").read_text())["rows"]


@pytest.mark.parametrize("row", ROWS, ids=[f"{r['name']}-{i}" for i, r in enumerate(ROWS)])
def test_equals_the_projects_own_code(row: dict[str, Any]) -> None:
    params = dict(row["params"])
    if "metrics" in params:
        params["metrics"] = [math.nan if m is None else m for m in params["metrics"]]
    plan = simulate(row["name"], row["n"], lr=row["lr"], **params)
    np.testing.assert_allclose(plan.values, np.array(row["values"]), rtol=1e-12, atol=1e-20)


def test_every_table_name_is_known_and_every_family_is_tabled() -> None:
    tabled = {row["name"] for row in ROWS}
    assert tabled <= set(names())
    missing = {n for n in names() if n.startswith(("hf.", "timm."))} - tabled
    assert missing == {"hf.reduce_lr_on_plateau"}  # torch's own, tested against torch


def lr(name: str, n: int, base: float, **params: Any) -> np.ndarray[Any, Any]:
    return simulate(name, n, lr=base, **params).lr()


def test_nanogpt_both_ways_of_counting() -> None:
    new = lr("nanogpt", 60, 6e-4, warmup_iters=10, lr_decay_iters=50, min_lr=6e-5)
    old = lr("nanogpt", 60, 6e-4, warmup_iters=10, lr_decay_iters=50, min_lr=6e-5, counts_from_one=False)
    assert new[0] == pytest.approx(6e-4 / 11)
    assert old[0] == 0.0
    assert old[5] == pytest.approx(3e-4)
    assert new[10] == pytest.approx(6e-4)
    assert new[30] == pytest.approx(6e-5 + 0.5 * (6e-4 - 6e-5))
    assert new[51:].tolist() == pytest.approx([6e-5] * 10)


def test_megatron_counts_iterations_or_samples() -> None:
    by_iter = lr("megatron", 100, 1.5e-4, lr_decay_steps=80, lr_warmup_steps=10, lr_decay_style="cosine", min_lr=1e-5)
    by_sample = lr(
        "megatron",
        100,
        1.5e-4,
        lr_decay_steps=80 * 64,
        lr_warmup_steps=10 * 64,
        lr_decay_style="cosine",
        min_lr=1e-5,
        increment=64,
    )
    np.testing.assert_allclose(by_iter, by_sample, rtol=1e-12)
    assert by_iter[[0, 5, 10]] == pytest.approx([0, 0.75e-4, 1.5e-4])
    assert by_iter[45] == pytest.approx(1e-5 + (1.5e-4 - 1e-5) / 2)
    assert by_iter[81:].tolist() == pytest.approx([1e-5] * 20)
    linear = lr("megatron", 100, 1.0, lr_decay_steps=100, lr_warmup_steps=0)
    assert linear[[0, 50, 100]] == pytest.approx([1, 0.5, 0])
    assert lr("megatron", 9, 1.0, lr_decay_steps=9, lr_warmup_steps=3, lr_decay_style="constant")[-1] == 1.0
    rsqrt = lr("megatron", 400, 1.0, lr_decay_steps=400, lr_warmup_steps=100, lr_decay_style="inverse-square-root")
    assert rsqrt[400] == pytest.approx(0.5)
    wsd = lr(
        "megatron", 100, 1.0, lr_decay_steps=100, lr_decay_style="WSD", wsd_decay_steps=20, wsd_decay_style="linear"
    )
    assert wsd[[80, 90, 100]] == pytest.approx([1.0, 0.5, 0.0])


def test_yolo_warm_up_by_batch_then_epoch_by_epoch() -> None:
    weights = lr("ultralytics", 4000, 0.01, epochs=100, steps_per_epoch=40, warmup_epochs=3)
    biases = lr("ultralytics", 4000, 0.01, epochs=100, steps_per_epoch=40, warmup_epochs=3, bias=True)
    assert weights[0] == 0.0
    assert biases[0] == pytest.approx(0.1)
    assert weights[60] == pytest.approx(0.5 * 0.01 * (0.99 * 0.99 + 0.01))
    assert weights[120] == pytest.approx(0.01 * (0.97 * 0.99 + 0.01))
    assert weights[120:160].tolist() == [weights[120]] * 40
    assert weights[3999] == pytest.approx(0.01 * (0.01 * 0.99 + 0.01))
    short = lr("ultralytics", 300, 0.01, epochs=30, steps_per_epoch=10, warmup_epochs=1)
    # At least 100 batches of warm-up, whatever the epochs say: half way at batch 50, in epoch 5.
    assert short[50] == pytest.approx(0.5 * 0.01 * ((1 - 5 / 30) * 0.99 + 0.01))
    cosine = lr("ultralytics", 100, 1.0, epochs=100, steps_per_epoch=1, warmup_epochs=0, cos_lr=True)
    assert cosine[[0, 50, 100]] == pytest.approx([1, 0.505, 0.01])


def test_mmcv_step_with_linear_warm_up() -> None:
    plan = simulate(
        "mmcv",
        12 * 100,
        lr=0.02,
        policy="step",
        step=[8, 11],
        steps_per_epoch=100,
        max_epochs=12,
        warmup="linear",
        warmup_iters=50,
        warmup_ratio=0.001,
    )
    got = plan.lr()
    assert got[[0, 25, 50, 799, 800, 1100]] == pytest.approx([2e-5, 0.01001, 0.02, 0.02, 0.002, 0.0002])
    cosine = lr("mmcv", 100, 1.0, policy="CosineAnnealing", by_epoch=False, max_iters=100, min_lr_ratio=0.1)
    assert cosine[[0, 50, 100]] == pytest.approx([1, 0.55, 0.1])
    exp = lr("mmcv", 10, 1.0, policy="fixed", warmup="exp", warmup_iters=4, warmup_ratio=0.0625)
    assert exp[:5] == pytest.approx([0.0625, 0.125, 0.25, 0.5, 1.0])


def test_basicsr_warm_up_sticks_below_the_nominal_lr() -> None:
    """Real log of CASES 1.1: warm-up 1000, base 2e-4: 2.000e-05 at iteration 100, 1.998e-04 ever after."""
    redux = simulate(
        "basicsr.MultiStepLR", 3000, lr=2e-4, milestones=[2500], gamma=0.5, warmup_iter=1000, after_update=True
    )
    assert redux.lr()[0] == 2e-4  # the first update is not warmed up there
    assert f"{redux.lr()[100]:.3e}" == "2.000e-05"
    assert {f"{v:.3e}" for v in redux.lr()[999:2500]} == {"1.998e-04"}
    assert redux.lr()[2500] == pytest.approx(0.5 * 0.999 * 2e-4)
    plain = simulate("basicsr.MultiStepLR", 3000, lr=2e-4, milestones=[2500], gamma=0.5, warmup_iter=1000)
    np.testing.assert_allclose(plain.lr()[:2400], redux.lr()[1:2401])
    # A scheduler that is not chainable forgets the warm-up: it is right at once.
    cosine = simulate("basicsr.CosineAnnealingRestartLR", 3000, lr=2e-4, periods=[3000], warmup_iter=1000)
    assert cosine.lr()[1000] == pytest.approx(1e-4 * (1 + math.cos(math.pi / 3)))


def test_basicsr_restarts() -> None:
    plan = simulate(
        "basicsr.MultiStepRestartLR",
        20,
        lr=1.0,
        milestones=[4, 8, 14],
        gamma=0.5,
        restarts=[0, 10],
        restart_weights=[1, 0.5],
    )
    assert plan.lr()[[0, 4, 8, 10, 14]].tolist() == [1.0, 0.5, 0.25, 0.5, 0.25]
    used_up = simulate("basicsr.CosineAnnealingRestartLR", 25, lr=1.0, periods=[10, 10], restart_weights=[1, 0.5])
    assert used_up.lr()[11] == pytest.approx(0.25 * (1 + math.cos(math.pi / 10)))
    assert np.isnan(used_up.lr()[21:]).all()


def test_diffusion_loops() -> None:
    assert lr("sedd", 10, 3e-4, warmup=4)[:5] == pytest.approx(np.array([1, 2, 3, 4, 4]) / 4 * 3e-4)
    assert lr("sedd", 10, 3e-4, warmup=0)[0] == 3e-4
    edm = lr("edm", 30, 1e-3, batch_size=512, lr_rampup_kimg=10)
    assert edm[[0, 10, 20]] == pytest.approx([0, 1e-3 * 5120 / 10000, 1e-3])
    edm2 = lr("edm2", 400, 0.01, batch_size=100, ref_batches=100, rampup_Mimg=0.001)
    assert edm2[[0, 5, 10, 100, 400]] == pytest.approx([0, 0.005, 0.01, 0.01, 0.005])
    assert lr("openai", 100, 1e-4, lr_anneal_steps=100)[[0, 50, 100]] == pytest.approx([1e-4, 5e-5, 0])


def test_timm_lr_scale_is_per_group() -> None:
    plan = simulate("timm.cosine", 10, lr=[1.0, 1.0], t_initial=10, lr_scale=[1.0, 0.65])
    np.testing.assert_allclose(plan.lr(1), 0.65 * plan.lr(0))


def test_stepping_holding_shifting() -> None:
    epochs = simulate("StepLR", 4, lr=1.0, step_size=2, gamma=0.1)
    steps = held(epochs, 5)
    assert steps.n == 20
    assert steps.lr()[[0, 9, 10, 19, 20]] == pytest.approx([1, 1, 0.1, 0.1, 0.01])
    # Accelerate: a schedule of 100 ticks stepped by 4 processes is spent after 25 updates (SCH-07).
    fast = strided(simulate("hf.linear", 100, lr=1.0, num_training_steps=100), 4)
    assert fast.n == 25
    assert fast.lr()[25] == 0.0
    ahead = shifted(simulate("OneCycleLR", 50, lr=0.1, max_lr=0.8, total_steps=50), 1)
    assert ahead.lr()[0] == simulate("OneCycleLR", 50, lr=0.1, max_lr=0.8, total_steps=50).lr()[1]
    behind = shifted(simulate("ExponentialLR", 5, lr=1.0, gamma=0.5), -2)
    assert behind.lr().tolist() == [1, 1, 1, 0.5, 0.25, 0.125]
    assert np.isnan(logged(epochs, [0, 4, 5])).tolist() == [False, False, True]
    with pytest.raises(InputError):
        held(epochs, 0)


def test_a_plan_cannot_be_changed() -> None:
    plan = Plan("x", np.ones((1, 3)))
    with pytest.raises(ValueError, match="read-only"):
        plan.values[0, 0] = 2.0


def test_oracle_numbers_of_the_cases() -> None:
    """CASES.md §3: the 60-epoch plan of case 004, and the 80-epoch log read with one tick too many."""
    plan = simulate("OneCycleLR", 37500, max_lr=0.8, total_steps=37500, pct_start=8 / 60)
    want = {
        625: 0.061242,
        626: 0.061334,
        6250: 0.797079,
        6251: 0.797074,
        12500: 0.699379,
        18750: 0.495690,
        25000: 0.258124,
    }
    for step, value in want.items():
        assert f"{plan.lr()[step]:.6f}" == f"{value:.6f}", step
    assert plan.lr()[37499] == pytest.approx(3.2e-6)
    assert plan.momentum is not None
    assert (plan.momentum.max(), plan.momentum.min()) == pytest.approx((0.95, 0.85), abs=1e-6)
    long = simulate("OneCycleLR", 50001, max_lr=0.8, total_steps=50000, pct_start=5 / 80)
    for step, value in {626: 0.105610, 1251: 0.297852, 1876: 0.535250, 6251: 0.791248}.items():
        assert f"{long.lr()[step]:.6f}" == f"{value:.6f}", step
    assert math.isnan(long.lr()[50001])  # "Tried to step 50001 times": the 80-epoch run died in epoch 80


def test_a_million_ticks_are_quick() -> None:
    import time

    begun = time.process_time()
    simulate("CosineAnnealingLR", 1_000_000, lr=0.1, T_max=1_000_000, eta_min=1e-6)
    assert time.process_time() - begun < 3.0  # about 0.5 s on an idle core; room for a busy one
