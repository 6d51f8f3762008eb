"""Patterns that are expected: each is named on a made run of its own, and not on one that looks like it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from made_runs import RNG, case_of, flat
from made_runs import falling as fall

from wheeltapper.rules.causes import normals
from wheeltapper.run.model import Run
from wheeltapper.testing import make_run

BY_ID = {normal.id: normal for normal in normals()}
JITTER = [0.01 * ((i * 7) % 5) for i in range(400)]


def run(series: dict[str, Any], **given: Any) -> Run:
    return make_run({name: list(values) for name, values in series.items()}, **given)


def level(height: float, n: int, scale: float = 1.0) -> list[float]:
    return [height + scale * JITTER[i] for i in range(n)]


def falling(start: float, floor: float, n: int, rate: float = 0.95) -> list[float]:
    return [floor + (start - floor) * rate**i * (1 + JITTER[i]) for i in range(n)]


def returns(lost: bool) -> Run:
    up = [10.0 * i + JITTER[i] for i in range(60)]
    down = level(5.0, 40, 50.0) if lost else [600 + 5.0 * i for i in range(40)]
    return run({"return": [*up, *down], "policy_loss": level(0.0, 100)})


def inverted(config: str) -> Run:
    return run({"train/loss": falling(2.0, 1.0, 30), "val/loss": falling(1.5, 0.6, 30)}, config=config)


def detector(*zeros: float) -> Run:
    return run({"val/map": [*zeros, *[0.05 + 0.02 * i for i in range(20)]]})


def staged(**series: list[float]) -> Run:
    return run({"train/loss": [*level(1.0, 40), *level(2.0, 40)], **series})


def wavy(n: int, peak: int) -> list[float]:
    up = [0.3 + 0.5 * (1 - 0.8**i) for i in range(n)]
    noise = [0.01 * np.sin(9.7 * i) for i in range(n)]
    noise[peak] = 0.012
    return [a + b for a, b in zip(up, noise, strict=True)]


PAIRS: list[tuple[str, tuple[Callable[[], Run], Callable[[], Run]]]] = [
    ("normal-val-better-than-train", (lambda: inverted("mixup: 0.8\n"), lambda: inverted("mixup: 0.0\nlr: 0.1\n"))),
    (
        "normal-curriculum-rise",
        (lambda: staged(difficulty=[0.1] * 40 + [0.9] * 40), lambda: staged()),
    ),
    (
        "normal-diffusion-noise",
        (
            lambda: run({"train/loss": 1 + 0.3 * np.abs(RNG.normal(0, 1, 200))}, config="sigma_data: 0.5\n"),
            lambda: run({"train/loss": 1 + 0.3 * np.abs(RNG.normal(0, 1, 200))}, config="lr: 0.5\n"),
        ),
    ),
    (
        "normal-gan-losses",
        (
            lambda: run({"d_loss": level(0.6, 40), "g_loss": level(1.0, 40)}),
            lambda: run({"D_A": [0.2] * 30 + [0.002] * 70, "G_A": [0.4] * 30 + [0.99] * 70}),
        ),
    ),
    ("normal-policy-loss", (lambda: returns(lost=False), lambda: returns(lost=True))),
    (
        "normal-single-class-loss",
        (
            lambda: run({"train/cls_loss": [0.0] * 20, "train/box_loss": falling(1, 0.1, 20), "val/map": [0.6] * 20}),
            lambda: run({"train/cls_loss": [0.0] * 20, "train/box_loss": falling(1, 0.1, 20), "val/map": [0.0] * 20}),
        ),
    ),
    (
        "normal-loss-units",
        (
            lambda: run(
                {"train/loss": [16 * v for v in falling(3, 0.1, 20, 0.8)], "val/loss": falling(3, 0.1, 20, 0.8)}
            ),
            lambda: inverted("lr: 0.1\n"),
        ),
    ),
    (
        "normal-label-smoothing-floor",
        (
            lambda: run({"train/loss": falling(6.9, 1.3, 80)}, config="num_classes: 1000\nlabel_smoothing: 0.1\n"),
            lambda: run({"train/loss": falling(6.9, 4.0, 80)}, config="num_classes: 1000\nlabel_smoothing: 0.1\n"),
        ),
    ),
    (
        "normal-first-evals-chaotic",
        (
            lambda: run({"val/loss": [2.0, 9.0, 1.9, *falling(1.8, 0.5, 30)]}),
            lambda: run({"val/loss": [2.0, 1.95, 1.9, *falling(1.8, 0.5, 30)]}),
        ),
    ),
    ("normal-late-map", (lambda: detector(0.0, 0.0, 0.001, 0.004), lambda: detector(0.03))),
    (
        "normal-resize-jump",
        (lambda: staged(image_size=[128.0] * 40 + [224.0] * 40), lambda: staged(image_size=[128.0] * 80)),
    ),
    (
        "normal-noise-plateau",
        (
            lambda: run({"val/accuracy": wavy(60, 45)}),
            lambda: run({"val/accuracy": [0.1 + 0.01 * i for i in range(60)]}),
        ),
    ),
]


@pytest.mark.parametrize(("normal", "pair"), PAIRS, ids=[name for name, _ in PAIRS])
def test_normal_patterns_are_named_where_they_are(normal: str, pair: tuple[Any, Any]) -> None:
    expected = BY_ID[normal].expect(case_of(pair[0]()))
    assert "expected" in expected
    assert BY_ID[normal].expect(case_of(pair[1]())) == ""


HEALTHY = fall(200).tolist()
STEPS = [0.1] * 100 + [0.01] * 100
STAIRS = [*flat(100, 0.6, 0.005), *flat(100, 0.75, 0.005)]
SLOW = [*flat(20, 0.01, 0.001), *(0.9 - 0.89 * np.exp(-np.arange(60) / 15)).tolist()]
TWINS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
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


@pytest.mark.parametrize("pattern", TWINS)
def test_a_normal_pattern_is_explained_and_its_ill_twin_is_not(pattern: str) -> None:
    normal, other = TWINS[pattern]
    assert BY_ID[pattern].expect(case_of(make_run(normal)))
    assert BY_ID[pattern].expect(case_of(make_run(other))) == ""


@pytest.mark.parametrize(("optimizer", "normal"), [("adamw", True), ("sgd", False)])
def test_clipping_every_step_is_normal_for_adam_only(optimizer: str, normal: bool) -> None:
    made = make_run(
        {"train/loss": HEALTHY, "grad_norm": flat(200, 5.0, 0.2)},
        config=f"optimizer: {optimizer}\nclip_grad: 1.0\nlr: 0.001\n",
    )
    assert bool(BY_ID["normal-clip-under-adam"].expect(case_of(made))) == normal


def test_every_pattern_has_its_pair() -> None:
    assert {name for name, _ in PAIRS} | set(TWINS) | {"normal-clip-under-adam"} == set(BY_ID)
