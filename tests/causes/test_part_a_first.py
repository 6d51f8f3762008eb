"""The first causes that were written, and the normal patterns: where they must be named and where they must not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from made_runs import NOISE, at_chance, broken, declared, falling, flat, named, top, weigh

from wheeltapper.causes import Excluded
from wheeltapper.diagnosis.diagnose import diagnose_run
from wheeltapper.run.model import Run
from wheeltapper.signs.onecycle_ahead import _rates
from wheeltapper.sources.record import Event
from wheeltapper.testing import make_run


def test_a_rate_too_low_to_train() -> None:
    tiny = make_run({**at_chance(10, 60), "lr": [1e-7] * 60}, spacing=100, config="num_classes: 10\n")
    assert top(diagnose_run(tiny), 1) == ["lr-too-low"]
    usual = make_run({**at_chance(10, 60), "lr": [1e-2] * 60}, spacing=100, config="num_classes: 10\n")
    assert named(diagnose_run(usual), "lr-too-low") < 0.3
    far = make_run({"train/loss": broken(100, 50), "lr": [1e-7] * 100})
    assert isinstance(weigh("lr-too-low", far), Excluded)


def early(lr: list[float]) -> Run:
    return make_run({"train/loss": broken(200, 6), "lr": lr}, spacing=10)


def test_trouble_in_the_first_steps_without_warmup() -> None:
    assert "no-warmup" in top(diagnose_run(early([1e-3] * 200)))
    warmed = early([1e-3 * min(1.0, (i + 1) / 20) for i in range(200)])
    assert isinstance(weigh("no-warmup", warmed), Excluded)
    late = make_run({"train/loss": broken(400, 300), "lr": [1e-3] * 400}, spacing=100)
    assert isinstance(weigh("no-warmup", late), Excluded)


def test_a_one_cycle_that_overruns() -> None:
    run = make_run({"lr": _rates(1)}, start=1, clock="epoch")
    assert top(diagnose_run(run), 1) == ["onecycle-overrun"]
    assert isinstance(weigh("onecycle-overrun", make_run({"lr": _rates(0)}, start=1, clock="epoch")), Excluded)


def resumed(lr: list[float], score: list[float], loss: list[float] | None = None) -> Run:
    return make_run(
        {"lr": lr, "val/accuracy": score, "train/loss": loss or falling(len(lr)).tolist()},
        events=[Event("resume", "Resuming from checkpoint", "made.log", 61)],
        clock="epoch",
    )


def test_a_schedule_that_starts_anew_at_a_resume() -> None:
    decay = [1e-3 * 0.95**i for i in range(60)]
    score = (0.9 - 0.5 * np.exp(-np.arange(60) / 10) + 0.002 * NOISE[:60]).tolist()
    jump = resumed([*decay, *decay[:30]], [*score, *flat(30, 0.7, 0.002)])
    assert top(diagnose_run(jump), 1) == ["schedule-restarted-on-resume"]
    smooth = resumed([1e-3 * 0.95**i for i in range(90)], [*score, *flat(30, 0.7, 0.002)])
    assert isinstance(weigh("schedule-restarted-on-resume", smooth), Excluded)


def test_a_resume_without_the_optimizer_state() -> None:
    audit = [declared("resume-incomplete", "the checkpoint has no optimizer state (train.py:70)")]
    loss = [*falling(60, end=1.0).tolist(), *flat(30, 2.2, 0.02)]
    run = resumed([1e-3] * 90, flat(90, 0.8, 0.002), loss)
    assert "resume-lost-optimizer" in top(diagnose_run(run, audit=audit))
    alone = make_run({"train/loss": loss, "lr": [1e-3] * 90})
    assert isinstance(weigh("resume-lost-optimizer", alone, audit), Excluded)
    sooner = resumed([1e-3] * 90, flat(90, 0.8, 0.002), broken(90, 20))
    assert isinstance(weigh("resume-lost-optimizer", sooner, audit), Excluded)


def test_accumulation_that_is_not_done() -> None:
    config = "lr: 0.1\noptimizer: sgd\naccumulation_steps: 4\nbatch_size_per_gpu: 10\ntrain_size: 1000\n"
    for per_epoch, done in ((100, False), (25, True)):
        run = make_run({"train/loss": broken(100, 50)}, config=config, facts={"steps_per_epoch": per_epoch})
        assert isinstance(weigh("accumulation-not-done", run), Excluded) == done
    audit = [declared("accumulation-not-implemented", "accumulation_steps is read and the optimizer steps every batch")]
    diagnosis = diagnose_run(make_run({"train/loss": broken(100, 50)}, config=config), audit=audit)
    assert "accumulation-not-done" in top(diagnosis)
    none = make_run({"train/loss": broken(100, 50)}, config="lr: 0.1\n")
    assert isinstance(weigh("accumulation-not-done", none), Excluded)


def half(precision: str, scale: list[float]) -> Run:
    loss = [*falling(100, end=1.0).tolist(), *[math.nan] * 20]
    return make_run({"train/loss": loss, "loss_scale": scale, "lr": [1e-3 * (1 - i / 150) for i in range(120)]},
                    config=f"precision: {precision}\nlr: 0.001\nclip_grad: 1.0\n")  # fmt: skip


def test_fp16_overflow_shows_in_the_scale_first() -> None:
    fell = [65536.0] * 90 + [65536.0 / 2.0**i for i in range(1, 31)]
    assert top(diagnose_run(half("fp16", fell)), 1) == ["fp16-overflow"]
    assert isinstance(weigh("fp16-overflow", half("bf16", fell)), Excluded)
    assert named(diagnose_run(half("fp16", [65536.0] * 120)), "fp16-overflow") < 0.3


def test_a_fixed_loss_scale() -> None:
    def run(scale: list[float], precision: str) -> Run:
        return make_run({"train/loss": broken(120, 20), "loss_scale": scale}, config=f"precision: {precision}\n")

    assert "static-loss-scale" in top(diagnose_run(run([12.0] * 120, "fp16")))
    for scale, precision in (([12.0] * 120, "bf16"), ([1.0] * 120, "fp16"), ([65536.0] * 60 + [32768.0] * 60, "fp16")):
        assert isinstance(weigh("static-loss-scale", run(scale, precision)), Excluded)


def averaged(decay: float, steps: int) -> Run:
    n = 60
    curves = {**at_chance(10, n), "train/loss": falling(n, end=0.2).tolist()}
    return make_run(curves, spacing=steps / n, config=f"lr: 0.001\nema_decay: {decay}\nnum_classes: 10\n")


def test_an_average_that_is_still_its_first_copy() -> None:
    assert "ema-horizon-too-long" in top(diagnose_run(averaged(0.9999, 2000)))
    assert isinstance(weigh("ema-horizon-too-long", averaged(0.999, 20_000)), Excluded)
    assert isinstance(weigh("ema-horizon-too-long", make_run(at_chance(10), config="lr: 0.1\n")), Excluded)


def test_stale_buffers_need_code() -> None:
    audit = [declared("ema-buffers-not-averaged", "the average copies no batch-norm statistics (ema.py:12)")]
    run = averaged(0.999, 20_000)
    assert "ema-buffers-stale" in top(diagnose_run(run, audit=audit))
    assert named(diagnose_run(run), "ema-buffers-stale") < 0.1


@pytest.mark.parametrize(
    ("optimizer", "norm", "likely"), [("sgd", 500.0, True), ("adamw", 500.0, False), ("sgd", 0.2, False)]
)
def test_a_clip_that_holds_sgd_back(optimizer: str, norm: float, likely: bool) -> None:
    run = make_run(
        {**at_chance(10, 60), "grad_norm": flat(60, norm, 0.05 * norm)},
        spacing=100,
        config=f"optimizer: {optimizer}\nlr: 0.1\nclip_grad: 1.0\nnum_classes: 10\n",
    )
    assert ("clip-too-small" in top(diagnose_run(run))) == likely
    if not likely:
        assert isinstance(weigh("clip-too-small", run), Excluded)


def test_gradients_that_are_never_cleared() -> None:
    n = 100
    grows = make_run({"train/loss": broken(n, 15), "grad_norm": [0.5 * (i + 1) for i in range(n)]})
    assert "zero-grad-missing" in top(diagnose_run(grows))
    steady = make_run({"train/loss": broken(n, 15), "grad_norm": flat(n, 1.0, 0.1)})
    assert isinstance(weigh("zero-grad-missing", steady), Excluded)


def test_options_that_are_not_wired() -> None:
    run = make_run({"train/loss": broken(100, 60), "lr": [1e-3 * (1 - i / 110) for i in range(100)]}, spacing=100)
    acts = [declared("option-never-used", "--warmup-epochs is declared and never used (train.py:20)")]
    idle = [declared("option-never-used", "--wandb-name is declared and never used (train.py:22)")]
    assert "option-not-wired" in top(diagnose_run(run, audit=acts))
    assert named(diagnose_run(run, audit=idle), "option-not-wired") < 0.1
    assert isinstance(weigh("option-not-wired", run), Excluded)


def test_a_loss_with_the_wrong_sign_never_falls() -> None:
    climbs = make_run({"train/loss": [float(v) for v in 1.0 + 0.05 * np.arange(100) + 0.01 * NOISE[:100]]})
    assert "wrong-loss-sign" in top(diagnose_run(climbs))
    assert isinstance(weigh("wrong-loss-sign", make_run({"train/loss": broken(100, 50)})), Excluded)


def test_the_floor_of_a_double_softmax() -> None:
    floor = math.log(1 + 9 / math.e)
    n = 2500
    x = floor + (math.log(10) - floor) * 0.99 ** np.arange(n) + 0.003 * np.abs(NOISE[:n])
    config = "num_classes: 10\nlr: 0.001\n"
    run = make_run(
        {"train/loss": x.tolist(), "lr": [1e-3] * n}, steps_per_epoch=100, config=config, facts={"total_steps": 9000}
    )
    assert top(diagnose_run(run), 1) == ["double-softmax"]
    below = make_run({"train/loss": (x - 0.5).tolist(), "lr": [1e-3] * n}, steps_per_epoch=100, config=config)
    assert isinstance(weigh("double-softmax", below), Excluded)


# --- normal patterns

HEALTHY = falling(200).tolist()
STEPS = [0.1] * 100 + [0.01] * 100
STAIRS = [*flat(100, 0.6, 0.005), *flat(100, 0.75, 0.005)]
SLOW = [*flat(20, 0.01, 0.001), *(0.9 - 0.89 * np.exp(-np.arange(60) / 15)).tolist()]
NORMALS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "normal-high-loss-scale": (
        {"train/loss": HEALTHY, "loss_scale": [2.0 ** (16 + i // 40) for i in range(200)]},
        {"train/loss": HEALTHY, "loss_scale": [65536.0] * 200},
    ),
    "normal-initial-skips": (
        {"train/loss": HEALTHY, "loss_scale": [65536.0, 32768.0, 4096.0, *[4096.0] * 197]},
        {"train/loss": HEALTHY, "loss_scale": [*[65536.0] * 100, *[4096.0] * 100]},
    ),
    "normal-disabled-scaler": (
        {"train/loss": HEALTHY, "loss_scale": [1.0] * 200},
        {"train/loss": HEALTHY, "loss_scale": [2.0] + [1.0] * 199},
    ),
    "normal-warm-restarts": (
        {"train/loss": HEALTHY, "lr": [0.5e-3 * (1 + math.cos(math.pi * (i % 50) / 50)) for i in range(200)]},
        {"train/loss": HEALTHY, "lr": [0.5e-3 * (1 + math.cos(math.pi * i / 200)) for i in range(200)]},
    ),
    "normal-lr-staircase": (
        {"train/loss": HEALTHY, "val/accuracy": STAIRS, "lr": STEPS},
        {"train/loss": HEALTHY, "val/accuracy": flat(200, 0.6, 0.005), "lr": STEPS},
    ),
    "normal-warmup-slow-start": (
        {"val/accuracy": SLOW, "lr": [1e-3 * min(1.0, (i + 1) / 20) for i in range(80)]},
        {"val/accuracy": SLOW, "lr": [1e-3] * 80},
    ),
    "normal-recovered-spike": (
        {"train/loss": [*HEALTHY[:150], 4.0, *HEALTHY[150:]]},
        {"train/loss": [*HEALTHY[:150], *flat(60, 4.0, 0.02)]},
    ),
    "normal-poisoned-average": (
        {"train/loss": [*HEALTHY[:80], *[math.nan] * 10, *HEALTHY[80:]]},
        {"train/loss": [*HEALTHY[:80], *[math.nan] * 30]},
    ),
}


@pytest.mark.parametrize("pattern", NORMALS)
def test_a_normal_pattern_is_explained_and_its_ill_twin_is_not(pattern: str) -> None:
    normal, other = NORMALS[pattern]
    assert pattern in [e.id for e in diagnose_run(make_run(normal)).expected]
    assert pattern not in [e.id for e in diagnose_run(make_run(other)).expected]


@pytest.mark.parametrize(("optimizer", "normal"), [("adamw", True), ("sgd", False)])
def test_clipping_every_step_is_normal_for_adam_only(optimizer: str, normal: bool) -> None:
    run = make_run(
        {"train/loss": HEALTHY, "grad_norm": flat(200, 5.0, 0.2)},
        config=f"optimizer: {optimizer}\nclip_grad: 1.0\nlr: 0.001\n",
    )
    assert ("normal-clip-under-adam" in [e.id for e in diagnose_run(run).expected]) == normal


def test_a_loss_far_above_guessing_is_not_a_low_rate() -> None:
    held = {"val/accuracy": [0.5] * 10, "val/loss": [7.9712] * 10}
    saturated = make_run({"train/loss": [7.9406, *[7.9712] * 9], **held})
    untrained = make_run({"train/loss": [0.6932, *[0.6931] * 9], "val/accuracy": [0.5] * 10, "val/loss": [0.6931] * 10})
    assert named(diagnose_run(saturated), "lr-too-low") < 0.2 < named(diagnose_run(untrained), "lr-too-low")
