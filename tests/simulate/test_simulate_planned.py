"""Plans from settings, and logs against plans: conventions pass, faults are named, doubt is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wheeltapper.finding import Unknown
from wheeltapper.reading.record import Fact
from wheeltapper.settings.knobs import read_knobs
from wheeltapper.settings.parse import parse_file, parse_text
from wheeltapper.simulate.compare_lr import LrMatch, compare_lr
from wheeltapper.simulate.plan import Plan, strided
from wheeltapper.simulate.plan_from_knobs import planned_lr
from wheeltapper.simulate.schedules import simulate


def planned(text: str, dialect: str, format: str = "yaml", **given: Any) -> Plan | Unknown:
    trees = [parse_text(text, f"config.{format}", format)]
    return planned_lr(read_knobs(trees, dialect=dialect), trees=trees, **given)


def plan_of(*args: Any, **given: Any) -> Plan:
    plan = planned(*args, **given)
    assert isinstance(plan, Plan), plan
    return plan


def test_hf() -> None:
    text = "learning_rate: 5.0e-4\nmax_steps: 1000\nwarmup_ratio: 0.1\nlr_scheduler_type: cosine\n"
    got = plan_of(text, "hf")
    want = simulate("hf.cosine", 1000, lr=5e-4, num_training_steps=1000, num_warmup_steps=100)
    np.testing.assert_array_equal(got.values, want.values)
    by_epochs = plan_of("learning_rate: 1.0e-3\nnum_train_epochs: 3\n", "hf", steps_per_epoch=100)
    assert by_epochs.total == 300
    assert by_epochs.lr()[150] == pytest.approx(5e-4)
    facts = {"steps_per_epoch": Fact("steps_per_epoch", 100, "train.log:3")}
    assert plan_of("learning_rate: 1.0e-3\n", "hf", facts=facts).total == 300  # three epochs by default
    floor = "learning_rate: 1.0e-3\nmax_steps: 100\nlr_scheduler_type: cosine_with_min_lr\n"
    assert plan_of(floor + "lr_scheduler_kwargs:\n  min_lr_rate: 0.1\n", "hf").lr()[-1] == pytest.approx(1e-4)
    assert isinstance(planned(floor, "hf"), Unknown)  # transformers itself refuses it without a minimum


def test_frameworks_that_count_in_their_own_way() -> None:
    nano = plan_of(
        "learning_rate = 6e-4\nwarmup_iters = 100\nlr_decay_iters = 1000\nmin_lr = 6e-5\nmax_iters = 1000\n",
        "nanogpt",
        "python",
    )
    assert nano.lr()[550] == pytest.approx(6e-5 + 0.5 * (6e-4 - 6e-5))
    assert nano.loose_until == 100  # versions differ in the warm-up
    yolo = plan_of(
        "task: detect\nmode: train\noptimizer: SGD\nlr0: 0.01\nlrf: 0.01\nepochs: 50\nbatch: 16\n",
        "ultralytics",
        steps_per_epoch=200,
    )
    assert yolo.lr()[200 * 25] == pytest.approx(0.01 * (0.5 * 0.99 + 0.01))
    sr = """
train:
  total_iter: 5000
  warmup_iter: 1000
  optim_g: {type: AdamW, lr: 2.0e-4}
  scheduler: {type: MultiStepLR, milestones: [3000], gamma: 0.5}
"""
    trainner = plan_of(sr, "trainner")
    assert f"{trainner.lr()[1500]:.3e}" == "1.998e-04"
    assert f"{trainner.lr()[4000]:.3e}" == "9.990e-05"
    assert plan_of(sr, "basicsr").lr()[0] == pytest.approx(2e-7)
    sedd = plan_of("optim:\n  lr: 3.0e-4\n  warmup: 100\ntraining:\n  n_iters: 1000\n", "sedd")
    assert sedd.lr()[49] == pytest.approx(1.5e-4)
    mm = """
optim_wrapper: {type: OptimWrapper, optimizer: {type: SGD, lr: 0.02}}
train_cfg: {max_epochs: 12}
param_scheduler:
  - {type: LinearLR, start_factor: 0.001, by_epoch: false, begin: 0, end: 500}
  - {type: MultiStepLR, begin: 0, end: 12, by_epoch: true, milestones: [8, 11], gamma: 0.1}
"""
    det = plan_of(mm, "mmengine", steps_per_epoch=1000)
    assert det.lr()[[0, 499, 7999, 8000, 11_999]] == pytest.approx([2e-5, 0.02, 0.02, 0.002, 0.0002])


@pytest.mark.parametrize(
    ("text", "dialect", "needs"),
    [
        ("learning_rate: 1.0e-3\nnum_train_epochs: 3\n", "hf", "steps_per_epoch"),
        ("learning_rate: 1.0e-3\nmax_steps: 10\nlr_scheduler_type: reduce_lr_on_plateau\n", "hf", "the metric"),
        ("lr: 0.1\nscheduler: cosine\nepochs: 90\n", "generic", ""),
        ("lr: 0.1\nscheduler: OneCycleLR\nmax_lr: 0.8\nepochs: 60\n", "generic", "schedule.interval"),
        ("task: detect\nmode: train\nepochs: 50\nlr0: 0.01\n", "ultralytics", "optimizer.lr"),  # optimizer: auto
        ("sched: plateau\nlr: 0.1\nepochs: 10\n", "timm", "the metric"),
        ("sched: cosine\nlr: 0.1\nepochs: 10\nlr_noise: 0.4\n", "timm", ""),
        ("learning_rate: 1.0e-3\nmax_steps: 150000000\n", "hf", "run.total_steps"),  # too many to hold one by one
    ],
)
def test_what_the_settings_do_not_say_is_unknown(text: str, dialect: str, needs: str) -> None:
    answer = planned(text, dialect, n_updates=None)
    assert isinstance(answer, Unknown)
    assert needs in " ".join(answer.needs)


# --- comparing ----------------------------------------------------------------------------------------------

COSINE = simulate("hf.cosine", 2000, lr=1e-3, num_training_steps=2000, num_warmup_steps=200)
STEPS = np.arange(20, 2001, 20)


def against(plan: Plan, values: Any, at: Any = STEPS, clock: Any = "step", **given: Any) -> LrMatch:
    return compare_lr(plan, at, values, clock, **given)


@pytest.mark.parametrize("shift", [0, -1, 1])
@pytest.mark.parametrize("form", ["exact", "%.3e", "%.6f"])
def test_conventions_of_a_step_log_pass(shift: int, form: str) -> None:
    ticks = np.minimum(STEPS + shift, 2000)
    values = COSINE.lr()[ticks]
    if form != "exact":
        values = np.array([float(form % v) for v in values])
    match = against(COSINE, values)
    assert match.verdict == "matches", match
    if form == "exact":
        assert (
            match.convention
            == {0: "as planned", -1: "the LR the step used, counted from 1", 1: "one tick ahead"}[shift]
        )


def test_conventions_of_an_epoch_log_pass() -> None:
    per = 100
    lr = COSINE.lr()
    zero, one = np.arange(20), np.arange(1, 21)
    for at, values, word in (
        (zero, lr[zero * per], "start of the epoch"),
        (one, lr[one * per], "end of an epoch counted from 1"),
        (zero, lr[(zero + 1) * per], "end of the epoch"),
        (one, lr[(one - 1) * per], "start of an epoch counted from 1"),
        (zero, lr[(zero + 1) * per - 1], "its last update"),
    ):
        match = against(COSINE, values, at, "epoch", steps_per_epoch=per)
        assert match.verdict == "matches", match
        assert word in match.convention
    means = np.array([lr[e * per : (e + 1) * per].mean() for e in zero])
    assert against(COSINE, means, zero, "epoch", steps_per_epoch=per).convention == "mean over the epoch"
    staircase = simulate("timm.cosine", 20, lr=1e-3, unit="epochs", t_initial=20)
    held_values = staircase.lr()[STEPS // per]
    assert against(staircase, held_values, steps_per_epoch=per).verdict == "matches"
    assert against(staircase, staircase.lr()[zero], zero, "epoch").verdict == "matches"


def test_the_80_epoch_log_has_one_tick_too_many() -> None:
    """CASES §3: LR at the end of each epoch, one scheduler step ahead."""
    plan = simulate("OneCycleLR", 50_000, max_lr=0.8, total_steps=50_000, pct_start=5 / 80)
    match = against(
        plan, [0.105610, 0.297852, 0.535250, 0.791248], [1, 2, 3, 10], "epoch", decimals=6, steps_per_epoch=625
    )
    assert match.verdict == "matches"
    assert match.convention.endswith("one tick ahead")


def test_faults_are_named() -> None:
    lr = COSINE.lr()
    scaled = against(COSINE, lr[STEPS] * 8)
    assert (scaled.verdict, round(scaled.ratio, 9)) == ("scaled", 8)
    # SCH-07: Accelerate steps the scheduler once per process.
    fast = strided(COSINE, 4).lr()
    at = np.arange(5, 500, 5)
    paced = against(COSINE, fast[at], at, factors={"world size": 4, "accumulation": 3})
    assert (paced.verdict, paced.time_factor, paced.factor_names) == ("paced", 4.0, ("world size",))
    slow = against(COSINE, lr[STEPS // 2], factors={"accumulation": 2})
    assert (slow.verdict, slow.time_factor, slow.factor_names) == ("paced", 0.5, ("accumulation",))
    # Megatron skips the first ten updates: the schedule stays ten behind.
    behind = against(COSINE, lr[np.maximum(STEPS - 10, 0)])
    assert (behind.verdict, behind.offset) == ("shifted", -10)
    # Skipped updates here and there: the lag grows, and is not called a difference (SCH-08).
    skipped = np.cumsum(np.isin(np.arange(2001), [0, 1, 2, 700, 1400]))
    lagging = against(COSINE, lr[np.maximum(STEPS - skipped[STEPS], 0)])
    assert (lagging.verdict, lagging.offset) == ("shifted", -5)
    parts = against(COSINE, np.where(STEPS < 1000, lr[STEPS], lr[STEPS] * 0.5))
    assert (parts.verdict, parts.first_mismatch) == ("differs", 1000)
    assert parts.ratio == pytest.approx(0.5)
    assert parts.jump_at == 1000
    torch_cosine = simulate("CosineAnnealingLR", 2000, lr=1e-3, T_max=1200)
    stays = np.where(np.arange(2001) <= 1200, torch_cosine.lr(), 0.0)
    climbs = against(Plan("planned", stays[None, :].copy()), torch_cosine.lr()[STEPS])
    assert climbs.verdict == "differs"
    assert climbs.first_mismatch == 1220
    assert climbs.rise_at == 1200
    constant = against(COSINE, np.full(len(STEPS), 1e-3))
    assert constant.verdict == "differs"


def test_doubt_is_said() -> None:
    assert against(COSINE, [1e-4, 2e-4], [20, 40]).verdict == "cannot tell"
    assert against(COSINE, COSINE.lr()[STEPS], clock="token").verdict == "cannot tell"
    assert against(COSINE, COSINE.lr()[STEPS], clock="epoch").verdict == "cannot tell"
    beyond = against(COSINE, np.zeros(5), [3000, 3100, 3200, 3300, 3400])
    assert beyond.verdict == "cannot tell"
    # A flat stretch fits any pace: nothing is claimed about it.
    flat = simulate("hf.constant", 1000, lr=1e-3)
    assert against(flat, np.full(50, 1e-3), np.arange(0, 500, 10)).verdict == "matches"


# --- real records -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "run", ["timm-cub-lr7e-5-healthy", "timm-cub-lr5e-4-diverged", "timm-cub-noconv-chance", "timm-cars-healthy"]
)
def test_timm_records_follow_their_own_args(shared_runs: Path, run: str) -> None:
    from test_simulate_lr_shape import columns

    tree = parse_file(shared_runs / run / "args.yaml")
    assert tree is not None
    plan = planned_lr(read_knobs([tree]), trees=[tree])
    assert isinstance(plan, Plan), plan
    match = compare_lr(plan, *columns(shared_runs / run), "epoch")
    assert match.verdict == "matches", match


def test_trainner_record_follows_its_own_config(shared_runs: Path) -> None:
    from test_simulate_lr_shape import columns

    plan = simulate(
        "basicsr.MultiStepLR",
        60_000,
        lr=2e-4,
        milestones=[40_000, 50_000, 55_000],
        gamma=0.5,
        warmup_iter=1000,
        after_update=True,
    )
    assert compare_lr(plan, *columns(shared_runs / "paragonsr2-realtime"), "step").verdict == "matches"
