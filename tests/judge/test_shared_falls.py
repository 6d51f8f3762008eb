"""Falls that many evaluations share, and what must not be taken for one."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from wheeltapper import api
from wheeltapper.judge.model import Diagnosis
from wheeltapper.study.statistics import fall_from_best, lag_noise, noise_of, sustained_fall


def told(folder: Path, text: str) -> Diagnosis:
    (folder / "metrics.csv").write_text(text)
    (diagnosis,) = api.diagnose(folder)
    return diagnosis


def wander(rng: np.random.Generator, n: int, rho: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    x = rng.standard_normal(n)
    for i in range(1, n):
        x[i] = rho * x[i - 1] + math.sqrt(1 - rho * rho) * x[i]
    return x


@pytest.mark.parametrize(("rho", "most"), [(0.0, 0), (0.6, 2), (0.9, 8)])
def test_a_flat_score_that_wanders_rarely_falls(rho: float, most: int) -> None:
    """120 series of 100 evaluations that learn and then stand still, under noise of this correlation. The test of the last few
    alone takes slow wandering for a fall much more often (38 % of them at 0.9)."""
    rng = np.random.default_rng(11)
    curve = 8 * np.exp(-np.arange(100) / 8)
    falls = [sustained_fall(curve + wander(rng, 100, rho)) for _ in range(120)]
    assert sum(f is not None and f.p < 1e-3 for f in falls) <= most


def test_a_fall_by_twice_the_noise_of_one_is_proved_by_many() -> None:
    rng = np.random.default_rng(2)
    x = np.concatenate([3 * np.exp(-np.arange(60) / 4), np.full(60, 2.0)]) + rng.standard_normal(120)
    alone, shared = fall_from_best(x), sustained_fall(x)
    assert alone is not None
    assert alone.p > 1e-3
    assert shared is not None
    assert shared.p < 1e-3
    assert 45 <= shared.onset_index <= 75
    assert 1.2 < shared.drop < 2.8


def test_slow_wandering_is_noise_to_it() -> None:
    x = wander(np.random.default_rng(5), 400, 0.95)
    assert lag_noise(x).sigma > 1.5 * noise_of(x).sigma
    assert abs(lag_noise(x).sigma - float(x.std())) < 0.35 * float(x.std())


def test_a_loss_that_rises_beside_a_noisy_score_that_holds_is_a_watch(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [
        f"{e},{1.7 * 0.99**e:.4f},{1.8 * 0.9**e + 1.0 + 0.6 * max(0, e - 100) / 100 + 0.35 * abs(rng.standard_normal()):.4f},"
        f"{0.6 - 0.4 * 0.9**e + 0.05 * rng.standard_normal():.4f}"
        for e in range(240)
    ]
    diagnosis = told(tmp_path, "epoch,train_loss,val_loss,val_acc\n" + "\n".join(rows))
    (fell,) = [f for f in diagnosis.findings if f.id == "declined-after-peak" and f.series == "val/loss"]
    assert fell.severity == "watch"
    assert "val/accuracy held its level" in fell.summary
    assert diagnosis.verdict != "ill"


def test_rows_without_a_clock_are_no_course_of_training(tmp_path: Path) -> None:
    """Scores of pictures, one a row, sorted by how hard they are."""
    rng = np.random.default_rng(7)
    rows = [f"{(0.75 if i < 60 else 0.5) + 0.09 * rng.standard_normal():.4f}" for i in range(120)]
    assert told(tmp_path, "val_iou\n" + "\n".join(rows)).verdict != "ill"


def test_the_beginning_of_learning_is_not_told_as_chance(tmp_path: Path) -> None:
    train = [0.693, 0.690, 0.683, 0.664, 0.657, 0.641, 0.622]
    val = [0.6957, 0.6930, 0.6909, 0.6907, 0.6902, 0.6905, 0.6815]
    right = [0.41, 0.49, 0.58, 0.55, 0.57, 0.51, 0.60]
    head = "epoch,loss,val_loss,val_accuracy\n"
    rows = [f"{e},{t},{v},{a}" for e, (t, v, a) in enumerate(zip(train, val, right, strict=True))]
    assert told(tmp_path, head + "\n".join(rows)).verdict == "cannot-tell"
    stands = [f"{e},0.6935,0.6932,0.5{e % 3}" for e in range(7)]
    assert told(tmp_path, head + "\n".join(stands)).verdict == "ill"


def test_a_score_on_its_way_back_has_not_fallen_for_good() -> None:
    level = np.concatenate([4 * np.exp(-np.arange(60) / 4), np.full(60, 3.0), np.full(60, 1.2)])
    assert sustained_fall(level + 0.8 * np.random.default_rng(9).standard_normal(180)) is None
