"""Two runs: settings by meaning, noise hidden, and where the curves part."""

from __future__ import annotations

import numpy as np
import pytest

from report_sample import series
from wheeltapper.judge.compare import compare_runs, where_apart
from wheeltapper.run.model import Fact, Run
from wheeltapper.settings.parse import parse_text


def run(name: str, config: str, **facts) -> Run:
    tree = parse_text(config, f"{name}.yaml", "yaml")
    return Run(name, ".", (), {}, configs=(tree,), facts={k: Fact(k, v, "x") for k, v in facts.items()})


def test_only_what_differs_by_meaning_and_no_noise() -> None:
    a = run(
        "a",
        "lr: 1e-3\nweight_decay: 0.0001\noutput_dir: out/a\nrun_name: a\nmystery: 1\nseed: 1\n",
        torch="2.1",
        host="h1",
    )
    b = run(
        "b",
        "lr: 0.002\nweight_decay: 1.0e-4\noutput_dir: out/b\nrun_name: b\nmystery: 2\nseed: 1\n",
        torch="2.4",
        host="h2",
    )
    found = compare_runs(a, b)
    assert [(d.name, d.kind, d.a, d.b) for d in found.differences] == [
        ("optimizer.lr", "knob", 0.001, 0.002),
        ("mystery", "key", 1, 2),
        ("torch", "environment", "2.1", "2.4"),
    ]
    assert found.hidden == 3
    assert str(found.differences[0].place_b).startswith("b.yaml:1")


def test_a_key_that_only_one_run_has_is_a_difference() -> None:
    found = compare_runs(run("a", "lr: 0.1\nfoo_bar: 3\n"), run("b", "lr: 0.1\n"))
    assert [(d.name, d.a, d.b) for d in found.differences] == [("foo_bar", 3, None)]


def noisy(rng: np.random.Generator, n: int, rho: float) -> np.ndarray:
    e = rng.standard_normal(n)
    for i in range(1, n):
        e[i] = rho * e[i - 1] + np.sqrt(1 - rho**2) * e[i]
    return e


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_equal_runs_with_different_noise_are_seldom_told_apart(rho: float) -> None:
    rng = np.random.default_rng(3)
    x = np.arange(300.0)
    trend = 2 + 3 * np.exp(-x / 60)
    alarms = 0
    for _ in range(100):
        a, b = (trend * np.exp(0.05 * noisy(rng, 300, rho)) for _ in range(2))
        alarms += where_apart(x, a, b, log=True)[1] is not None
    assert alarms <= 12  # 5 % are allowed for; 12 of 100 would be p < 0.01


def test_the_position_where_they_part() -> None:
    rng = np.random.default_rng(4)
    x = np.arange(0, 4000, 10.0)
    a = 2 * np.exp(0.02 * rng.standard_normal(400))
    b = 2 * np.exp(0.02 * rng.standard_normal(400))
    b[200:] *= 1.1
    equal_until, parts_at, rejoins = where_apart(x, a, b, log=True)
    assert equal_until is None
    assert parts_at == pytest.approx(2000, abs=60)
    assert not rejoins


def test_identical_until_and_nan_counts_as_apart() -> None:
    x = np.arange(100.0)
    a = np.linspace(2, 1, 100)
    b = a.copy()
    assert where_apart(x, a, b, log=True) == (99.0, None, False)
    b[60:] = np.nan
    assert where_apart(x, a, b, log=True)[:2] == (59.0, 60.0)


def test_curves_that_come_together_again() -> None:
    rng = np.random.default_rng(5)
    x = np.arange(400.0)
    a, b = (1 + 0.02 * rng.standard_normal(400) for _ in range(2))
    b[100:150] += 0.3
    _, parts_at, rejoins = where_apart(x, a, b, log=True)
    assert parts_at == pytest.approx(100, abs=8)
    assert rejoins


def test_series_on_different_clocks_are_left_out() -> None:
    one = Run("a", ".", (), {"train/loss": series("train/loss", [1.0, 2.0], clock="step")})
    two = Run("b", ".", (), {"train/loss": series("train/loss", [1.0, 2.0], clock="epoch")})
    assert compare_runs(one, two).curves == ()
    assert "no configuration" in compare_runs(one, two).notes[0]


def test_what_a_run_without_configuration_does_not_say_is_no_difference() -> None:
    found = compare_runs(Run("log", ".", (), {}), run("b", "lr: 0.002\nseed: 1\n"))
    assert found.differences == ()
    assert found.notes == ("no configuration was found for log: settings cannot be compared",)
