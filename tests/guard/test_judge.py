"""Alarms: facts at once, outliers only against the run's own quiet steps, and seldom by chance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from wheeltapper.guard.judge import Band, Judge, tail_level
from wheeltapper.guard.record import StepRecord


def row(k: int, loss: float = 1.0, norm: float = 1.0, **more: Any) -> StepRecord:
    fields: dict[str, Any] = {
        "step": k, "tick": k, "time": 0.0, "loss": loss, "micro": 1, "grad_norm": norm, "group_norms": (norm,), "before_clip": True,
        "lr": (0.1,), "update_ratio": 1e-3, "nonfinite": 0, "worst": -1, "clipped": None, "scale": math.nan, "skipped": False,
        "loss_given": True,
    }  # fmt: skip
    return StepRecord(**{**fields, **more})


def quiet(judge: Judge, steps: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    told = []
    for k in range(steps):
        loss = 3 - 2 * k / steps + 0.1 * rng.standard_normal()
        told += [a.kind for a in judge.step(row(k, loss, float(np.exp(0.3 * rng.standard_normal()))))]
    return told


def test_a_quiet_run_says_nothing() -> None:
    assert quiet(Judge(("w",)), 3000) == []


@pytest.mark.parametrize("noise", ["normal", "t5", "exponential"])
def test_the_false_rate(noise: str) -> None:
    """40,000 looks at a rate of one in a million: none is expected, and two would be one chance in a thousand."""
    rng = np.random.default_rng(5)
    draw = {
        "normal": rng.standard_normal,
        "t5": lambda n: rng.standard_t(5, n),
        "exponential": lambda n: rng.exponential(1, n),
    }[noise]
    false = 0
    for _ in range(8):
        band = Band()
        false += sum(band.above(float(v)) for v in draw(5000))
    assert false <= 1


def test_the_level_covers_heavier_tails() -> None:
    rng = np.random.default_rng(1)
    light, heavy = tail_level(rng.standard_normal(1024), 1e-6), tail_level(rng.standard_t(4, 1024), 1e-6)
    assert 5 < light < 10  # the true one is 4.75
    assert heavy > 1.5 * light


def test_bloom_176b() -> None:
    """The norms of six steps before a published loss spike: told when they grow, before the loss shows it."""
    judge = Judge(("w",))
    assert quiet(judge, 1000) == []
    logs, losses = [0.2, 1.6, 2.5, 4.4, 6.6, 8.5], [2.20, 2.22, 2.60, 2.24, 2.35, 5.10]
    told = {}
    for k, (norm, loss) in enumerate(zip(logs, losses, strict=True)):
        for alarm in judge.step(row(1000 + k, loss - 1.2, math.exp(norm))):
            told.setdefault(alarm.kind, k)
    assert told["norm-outlier"] < told["precursor"] <= 4
    assert "nonfinite" not in told


def test_rare_batches_are_no_precursor() -> None:
    """Two large norms in a row are two rare batches; three are the weights."""
    judge = Judge(("w",))
    quiet(judge, 600)
    told = [
        [a.kind for a in judge.step(row(600 + k, 1.0, n))]
        for k, n in enumerate([60.0, 80.0, 1.0, 90.0, 70.0, 65.0, 60.0])
    ]
    assert told == [["norm-outlier"], [], [], ["norm-outlier"], [], ["precursor"], []]


def test_a_new_level_is_learned_and_not_skipped_for_ever() -> None:
    judge = Judge(("w",))
    quiet(judge, 600)
    assert judge.norm_limit() < 40
    for k in range(5):
        list(judge.step(row(600 + k, 1.0, 500.0)))
    assert judge.norm_limit() == math.inf
    for k in range(500):
        list(judge.step(row(700 + k, 1.0, 500.0 * (1 + 0.01 * (k % 7)))))
    assert not any(True for _ in judge.step(row(1300, 1.0, 505.0)))


def test_overflows_under_a_scaler_are_its_own_business() -> None:
    judge = Judge(("w",))
    assert [a.kind for a in judge.step(row(0, norm=math.inf, nonfinite=1, worst=0, scale=65536.0, skipped=True))] == []
    assert [a.kind for a in judge.step(row(1, norm=math.inf, nonfinite=1, worst=0))] == ["nonfinite"]
    assert [a.kind for a in judge.step(row(2, scale=0.5))] == ["scale"]


def test_a_loss_that_is_nan_in_a_step_the_scaler_skips() -> None:
    """Mentioned, and a warning when it stays: no smaller scale mends a loss, which is not multiplied by it."""
    judge = Judge(("w",))
    skipped = {"loss": math.nan, "norm": math.nan, "nonfinite": 1, "worst": 0, "scale": 65536.0, "skipped": True}
    told = [[(a.kind, a.severity) for a in judge.step(row(k, **skipped))] for k in range(4)]
    assert told == [[("loss-skipped", "note")], [], [("loss-skipped", "warning")], []]
    assert [a.kind for a in judge.step(row(4, scale=65536.0))] == []


def test_a_loss_not_given_is_not_nan() -> None:
    judge = Judge(("w",))
    assert list(judge.step(row(0, loss=math.nan, loss_given=False))) == []
    assert [a.kind for a in judge.step(row(0, loss=math.nan))] == ["nonfinite-loss"]


def test_a_loss_that_leaves_its_band() -> None:
    judge = Judge(("w",))
    quiet(judge, 600)
    kinds = [a.kind for k in range(20) for a in judge.step(row(600 + k, loss=9.0 + k))]
    assert kinds == ["loss-left-band"]


def test_a_run_that_grows_noisier_is_not_an_outlier_of_its_quiet_past() -> None:
    """A plateau with next to no noise, then learning with noise, falling all the while."""
    rng = np.random.default_rng(3)
    band = Band()
    loss = [2.3 + 1e-4 * rng.standard_normal() for _ in range(300)]
    loss += [2.2 - 1e-4 * k + 0.01 * rng.standard_normal() for k in range(600)]
    assert sum(band.above(v) for v in loss) == 0
    assert band.above(3.0)
