"""Shapes of logged learning rates: every schedule we simulate, logged coarsely and rounded; real records."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wheeltapper.simulate.lr_fit import quantum
from wheeltapper.simulate.lr_shape import LrShape, shape_of_lr
from wheeltapper.simulate.schedules import simulate

N = 3000
WARM = {"num_warmup_steps": 300}
CASES: dict[str, tuple[str, str | None, str, dict[str, Any]]] = {
    "constant": ("constant", None, "hf.constant", {"lr": 1e-3}),
    "warm-up, constant": ("constant", None, "hf.constant_with_warmup", {"lr": 1e-3, **WARM}),
    "linear": ("decay", "linear", "hf.linear", {"lr": 1e-3, "num_training_steps": N}),
    "warm-up, linear": ("decay", "linear", "hf.linear", {"lr": 1e-3, "num_training_steps": N, **WARM}),
    "cosine": ("decay", "cosine", "hf.cosine", {"lr": 1e-3, "num_training_steps": N}),
    "warm-up, cosine": ("decay", "cosine", "hf.cosine", {"lr": 1e-3, "num_training_steps": N, **WARM}),
    "cosine to a minimum": (
        "decay",
        "cosine",
        "nanogpt",
        {"lr": 1e-3, "warmup_iters": 100, "lr_decay_iters": 2000, "min_lr": 1e-4},
    ),
    "step": ("step", None, "StepLR", {"lr": 0.1, "step_size": 1000}),
    "milestones": ("step", None, "MultiStepLR", {"lr": 0.1, "milestones": [1500, 2300]}),
    "mmdet 1x": (
        "step",
        None,
        "mmcv",
        {
            "lr": 0.02,
            "policy": "step",
            "step": [8, 11],
            "steps_per_epoch": 250,
            "warmup": "linear",
            "warmup_iters": 200,
            "warmup_ratio": 0.001,
        },
    ),
    "constant warm-up": (
        "step",
        None,
        "mmcv",
        {
            "lr": 0.02,
            "policy": "step",
            "step": [8, 11],
            "steps_per_epoch": 250,
            "warmup": "constant",
            "warmup_iters": 200,
            "warmup_ratio": 0.33,
        },
    ),
    "exponential": ("decay", "exponential", "ExponentialLR", {"lr": 0.1, "gamma": 0.999}),
    "one cycle": ("one_cycle", "cosine", "OneCycleLR", {"max_lr": 0.5, "total_steps": N}),
    "restarts": ("restarts", "cosine", "CosineAnnealingWarmRestarts", {"lr": 0.1, "T_0": 1000}),
    "longer and longer": ("restarts", "cosine", "CosineAnnealingWarmRestarts", {"lr": 0.1, "T_0": 400, "T_mult": 2}),
    "past its end": ("decay", "cosine", "CosineAnnealingLR", {"lr": 0.1, "T_max": 1800}),
    "inverse root": ("decay", "inverse_sqrt", "hf.inverse_sqrt", {"lr": 1e-3, "num_warmup_steps": 200}),
    "stable, linear": (
        "decay",
        "linear",
        "hf.warmup_stable_decay",
        {"lr": 1e-3, "num_training_steps": N, "num_warmup_steps": 150, "num_decay_steps": 900, "decay_type": "linear"},
    ),
    "triangles": ("cyclic", None, "CyclicLR", {"base_lr": 0.001, "max_lr": 0.1, "step_size_up": 300}),
    "still warming": ("warming", None, "hf.constant_with_warmup", {"lr": 1e-3, "num_warmup_steps": 9000}),
    "poly": ("decay", "polynomial", "PolynomialLR", {"lr": 0.01, "total_iters": N, "power": 0.9}),
}
PRINTED = {"exact": repr, "%.3e": "{:.3e}".format, "%.2e": "{:.2e}".format, "%.6f": "{:.6f}".format}


@pytest.mark.parametrize("stairs", [False, True], ids=["smooth", "per epoch"])
@pytest.mark.parametrize("printed", PRINTED)
@pytest.mark.parametrize("every", [10, 50])
@pytest.mark.parametrize("case", CASES)
def test_every_schedule_is_recognised(case: str, every: int, printed: str, stairs: bool) -> None:
    kind, decay, name, params = CASES[case]
    lr = simulate(name, N, **params).lr()
    if stairs:
        lr = lr[np.arange(N + 1) // 100 * 100]
    at = np.arange(every, N + 1, every)
    shape = shape_of_lr(at, [float(PRINTED[printed](float(v))) for v in lr[at]])
    assert shape.kind == kind, str(shape)
    assert shape.jumps == ()
    if decay is not None:
        assert shape.decay == decay
        assert decay in shape.decay_candidates


def logged(name: str, every: int = 10, **params: Any) -> LrShape:
    at = np.arange(every, N + 1, every)
    return shape_of_lr(at, simulate(name, N, **params).lr()[at])


def test_positions_are_right() -> None:
    warm = logged("hf.linear", lr=1e-3, num_training_steps=5000, num_warmup_steps=300)
    assert warm.warmup_end == 300
    assert warm.ends_at == pytest.approx(5000)
    cosine = logged("nanogpt", lr=1e-3, warmup_iters=100, lr_decay_iters=2000, min_lr=1e-4)
    assert cosine.ends_at == pytest.approx(2000, rel=1e-3)
    assert cosine.ends_with == pytest.approx(1e-4, rel=0.01)
    steps = logged("MultiStepLR", lr=0.1, milestones=[1500, 2300])
    assert [(cut.at, round(cut.ratio, 6)) for cut in steps.cuts] == [(1500, 0.1), (2300, 0.1)]
    again = logged("CosineAnnealingWarmRestarts", lr=0.1, T_0=400, T_mult=2)
    assert [restart.at for restart in again.restarts] == [400, 1200, 2800]
    climbs = logged("CosineAnnealingLR", lr=0.1, T_max=1800)
    assert climbs.rises_from == 1800
    spent = logged("hf.linear", lr=1e-3, num_training_steps=1500)
    assert spent.zero_from == 1500
    assert spent.low_from == 1490  # under 1 % of the peak from 1485 on
    stable = logged("hf.warmup_stable_decay", lr=1e-3, num_training_steps=N, num_warmup_steps=150, num_decay_steps=900)
    assert stable.stable_until == 2100
    assert logged("hf.constant_with_warmup", lr=1e-3, num_warmup_steps=9000).still_warming


def test_a_jump_is_not_a_restart() -> None:
    """A resume with a longer schedule (SCH-19): the LR leaps up in the middle of its decay."""
    at = np.arange(0, 100)
    old = 0.05 * (1 + np.cos(np.pi * at / 60))
    new = 0.05 * (1 + np.cos(np.pi * at / 100))
    shape = shape_of_lr(at, np.where(at < 46, old, new))
    assert [(jump.at, round(jump.ratio, 2)) for jump in shape.jumps] == [(46, round(new[46] / old[45], 2))]
    assert shape.restarts == ()
    assert shape.decay == "cosine"
    assert shape.ends_at == pytest.approx(100, rel=1e-3)
    lowered = shape_of_lr(at, np.where(at < 50, new, new / 10))
    assert [(jump.at, round(jump.ratio, 1)) for jump in lowered.jumps] == [(50, 0.1)]
    raised = shape_of_lr(at, np.where(at < 50, 0.1, 0.3))
    assert [jump.at for jump in raised.jumps] == [50]
    assert raised.warmup_end is None


def test_overwritten_points_do_not_count() -> None:
    at = [0, 1, 2, 3, 4, 5, 2, 3, 4, 5, 6, 7, 8]
    lr = [1, 1, 1, 1, 1, 1, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.01]
    shape = shape_of_lr(at, lr)
    assert shape.n == 9
    assert shape.last == 0.01


def test_small_inputs() -> None:
    assert shape_of_lr([], []).kind == "empty"
    assert str(shape_of_lr([], [])) == "no learning rate logged"
    assert shape_of_lr([1], [0.1]).kind == "constant"
    assert shape_of_lr([1, 2], [0.1, 0.1]).kind == "constant"
    assert shape_of_lr([1, 2, 3], [0.1, float("nan"), 0.1]).kind == "constant"
    assert shape_of_lr([1, 2], [0.1, 0.01]).n == 2
    assert shape_of_lr([1, 2, 3], [0.0, 0.0, 0.0]).kind == "constant"
    assert "warm-up to 0.001" in str(logged("hf.linear", lr=1e-3, num_training_steps=N, num_warmup_steps=300))


def test_rounding_is_read_from_the_values() -> None:
    assert quantum(np.array([0.00083, 0.0025, 0.00025, 0.00003])).tolist() == pytest.approx([5e-6] * 4)
    assert quantum(np.array([1.875e-05, 0.0001312, 0.00015, 0.0001499]))[1] == pytest.approx(5e-8)
    assert quantum(np.array([0.1, 1 / 3, 0.2, 0.7]))[0] < 1e-12
    assert quantum(np.array([0.1, 0.01, 0.01]))[0] < 1e-12


# --- real records -------------------------------------------------------------------------------------------


def columns(folder: Path) -> tuple[list[float], list[float]]:
    """The LR of a record, by the plainest means; the readers proper are tested elsewhere."""
    at: list[float] = []
    lr: list[float] = []
    for file in sorted(folder.iterdir()):
        text = file.read_text(encoding="utf-8", errors="replace")
        if file.name == "summary.csv":
            for row in csv.DictReader(text.splitlines()):
                at.append(float(row["epoch"]))
                lr.append(float(re.findall(r"[\d.e+-]+", row["train_lr"])[0]))
        elif file.name in ("results.csv", "epochs.csv"):
            for raw in csv.DictReader(text.splitlines()):
                row = {(k or "").strip(): v for k, v in raw.items()}
                at.append(float(row["epoch"]))
                lr.append(float(row.get("lr/pg1") or row.get("lr_end_of_epoch") or "nan"))
        elif file.name == "trainer_state.json":
            rows = [r for r in json.loads(text)["log_history"] if "learning_rate" in r]
            at += [r["step"] for r in rows]
            lr += [r["learning_rate"] for r in rows]
        elif file.name.endswith(".log.json"):
            rows = [json.loads(line) for line in text.splitlines()]
            rows = [r for r in rows if r.get("mode") == "train"]
            longest = max(r["iter"] for r in rows)
            at += [(r["epoch"] - 1) * longest + r["iter"] for r in rows]
            lr += [r["lr"] for r in rows]
        elif file.name == "log.txt":
            rows = [json.loads(line) for line in text.splitlines()]
            at += [r["epoch"] for r in rows]
            lr += [r["train_lr"] for r in rows]
        elif file.suffix in (".out", ".log"):
            pattern = r"iteration\s+(\d+)/.*learning rate: ([\d.E+-]+)|iter:\s*([\d,]+), lr:\(([\d.e+-]+)"
            for found in re.findall(pattern, text):
                at.append(float((found[0] or found[2]).replace(",", "")))
                lr.append(float(found[1] or found[3]))
    return at, lr


@pytest.mark.parametrize(
    ("run", "kind", "facts"),
    [
        ("timm-cub-lr7e-5-healthy", "decay", {"decay": "cosine", "warmup_end": 10, "ends_at": 100}),
        ("timm-cub-lr5e-4-diverged", "decay", {"decay": "cosine", "warmup_end": 10, "ends_at": 300}),
        ("timm-cub-46ep-then-resume", "decay", {"decay": "cosine", "ends_at": 50}),
        ("timm-cub-resume-lr-jump", "decay", {"decay": "cosine", "ends_at": 100}),
        ("hf-mt5-az-summ-healthy", "decay", {"decay": "linear", "warmup_end": 90, "ends_at": 9411}),
        ("hf-llm-book-24k-rows", "decay", {"decay": "linear", "ends_at": 155_800}),
        ("hf-law-llm-loss-scaled", "decay", {"decay": "cosine"}),
        ("resnet50-onecycle-80ep", "one_cycle", {"decay": "cosine"}),
        ("mae-finetune-healthy", "decay", {"decay": "cosine", "warmup_end": 5}),
        ("yolo8-ants-healthy", "decay", {"decay": "linear"}),
        ("megatron-n16-dson-healthy", "decay", {"decay": "cosine", "warmup_end": 8}),
        ("mmdet-freeanchor-diverged", "constant", {}),
        ("detr-sten1-plateau", "step", {}),
    ],
)
def test_real_records(shared_runs: Path, run: str, kind: str, facts: dict[str, Any]) -> None:
    shape = shape_of_lr(*columns(shared_runs / run))
    assert shape.kind == kind, str(shape)
    assert shape.jumps == ()
    assert shape.restarts == ()
    for name, value in facts.items():
        got = getattr(shape, name)
        assert got == (value if isinstance(value, str) else pytest.approx(value, rel=1e-3)), name


@pytest.mark.parametrize(
    ("run", "epochs", "ratio"),
    [
        ("mmdet-frcnn-voc-healthy", [8, 11], 0.1),
        ("mmdet-fcos-eval-zero", [8, 11], 0.1),  # a constant warm-up before
        ("mmdet-maskrcnn-coco-healthy", [8, 11], 0.1),
    ],
)
def test_mmdet_cuts_are_where_the_config_put_them(shared_runs: Path, run: str, epochs: list[int], ratio: float) -> None:
    at, lr = columns(shared_runs / run)
    shape = shape_of_lr(at, lr)
    per_epoch = max(at) / 12
    assert shape.kind == "step"
    assert [round((cut.before_at) / per_epoch) for cut in shape.cuts] == epochs
    assert [cut.ratio for cut in shape.cuts] == pytest.approx([ratio, ratio], rel=0.25)  # 0.00003 is rounded


def test_trainner_log(shared_runs: Path) -> None:
    shape = shape_of_lr(*columns(shared_runs / "paragonsr2-realtime"))
    assert shape.kind == "step"
    assert shape.peak == 1.998e-4  # 999/1000 of the nominal 2e-4 (CASES 1.1)
    assert [(cut.at, round(cut.ratio, 2)) for cut in shape.cuts] == [(40_000, 0.5), (50_000, 0.5), (55_000, 0.5)]
