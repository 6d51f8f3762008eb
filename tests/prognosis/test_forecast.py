"""Forecasts cover what comes, and are refused where extrapolation is not allowed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wheeltapper.errors import InputError
from wheeltapper.finding import Finding, Unknown
from wheeltapper.prognosis.forecast import Forecast, forecast
from wheeltapper.prognosis.goal import Goal, goal_of, reached, toward
from wheeltapper.run.model import Run
from wheeltapper.study import Study
from wheeltapper.testing import make_run


def curve(seed: int, n: int, rho: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = np.zeros(n)
    for i in range(1, n):
        noise[i] = rho * noise[i - 1] + 0.006 * rng.standard_normal()
    return 0.85 - 0.6 * (np.arange(n) + 2.0) ** -0.5 + noise


def run_seen(values: np.ndarray, share: float, total: int) -> Run:
    seen = values[: int(share * len(values))]
    return make_run({"val/accuracy": seen.tolist()}, facts={"total_steps": total})


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_bands_cover_the_end(rho: float) -> None:
    """Nominal 90 %; the backtest makes them wide enough with correlated noise too (PRG-04)."""
    covered = []
    for seed in range(40):
        values = curve(seed, 100, rho)
        told = forecast(Study(run_seen(values, 0.6, 99)))
        assert isinstance(told, Forecast)
        truth = float(np.median(values[-5:]))
        covered.append(told.low[-1] <= truth <= told.high[-1])
    assert np.mean(covered) >= 0.85


def test_bands_are_not_so_wide_that_they_say_nothing() -> None:
    told = forecast(Study(run_seen(curve(3, 100), 0.6, 99)))
    assert isinstance(told, Forecast)
    assert told.high[-1] - told.low[-1] < 0.15


def test_the_chance_of_a_target() -> None:
    told = forecast(Study(run_seen(curve(5, 100), 0.6, 99)))
    assert isinstance(told, Forecast)
    assert told.chance(0.5, 99) is not None
    assert told.chance(0.5, 99) > 0.95  # type: ignore[operator]
    assert told.chance(0.98, 99) < 0.05  # type: ignore[operator]
    assert told.chance(0.5, 10_000) is None


REFUSED = {
    "warming": (
        {"val/accuracy": [0.1 + 0.01 * i for i in range(30)], "lr": [1e-5 * (i + 1) for i in range(30)]},
        "warms up",
    ),
    "decay ahead": (
        {
            "val/accuracy": [0.1 + 0.01 * i for i in range(30)],
            "lr": [1e-3 * (1 + float(np.cos(np.pi * i / 100))) for i in range(30)],
        },
        "a forecast begins at 35%",
    ),
    "few": ({"val/accuracy": [0.1, 0.2, 0.3, 0.35]}, "ten are the least"),
    "worsening": ({"val/accuracy": [0.5 - 0.01 * i for i in range(30)]}, "does not improve"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_refuses(name: str) -> None:
    series, why = REFUSED[name]
    told = forecast(Study(make_run(series, facts={"total_steps": 200})))
    assert isinstance(told, Unknown)
    assert why in told.why


def test_it_refuses_on_an_ill_run_and_without_a_plan() -> None:
    run = run_seen(curve(1, 100), 0.6, 99)
    ill = Finding("diverged", "x", "ill", "is")
    assert isinstance(forecast(Study(run), (ill,)), Unknown)
    unplanned = make_run({"val/accuracy": curve(1, 60).tolist()})
    told = forecast(Study(unplanned))
    assert isinstance(told, Unknown)
    assert "planned length" in told.why


def test_a_target_is_given_a_chance_or_an_answer() -> None:
    study = Study(run_seen(curve(5, 100), 0.6, 99))
    likely, unlikely = (toward(study, (), Goal("val/accuracy", v)) for v in (0.78, 0.95))
    assert isinstance(likely, Forecast)
    assert isinstance(unlikely, Forecast)
    assert likely.chance_of_target is not None
    assert unlikely.chance_of_target is not None
    assert likely.chance_of_target > 0.5 > unlikely.chance_of_target
    assert "the chance that val/accuracy reaches 0.78 by step 99" in likely.lines[0]
    reached = toward(study, (), Goal("val/accuracy", 0.5))
    assert isinstance(reached, Unknown)
    assert "reached 0.5 already" in reached.why
    percent = toward(study, (), Goal("val/accuracy", 95))
    assert isinstance(percent, Forecast)
    assert percent.target == 0.95


def test_one_lucky_evaluation_does_not_reach_a_target() -> None:
    values = curve(5, 100)
    values[10] = 0.99
    told = toward(Study(run_seen(values, 0.6, 99)), (), Goal("val/accuracy", 0.97))
    assert not (isinstance(told, Unknown) and "already" in told.why)


def test_a_target_of_a_run_that_is_over_or_of_nothing() -> None:
    over = make_run({"val/accuracy": curve(1, 100).tolist()}, facts={"total_steps": 99})
    told = toward(Study(over), (), Goal("val/accuracy", 0.99))
    assert isinstance(told, Unknown)
    assert "the run is over" in told.why
    told = toward(Study(over), (), Goal("val/bleu", 30))
    assert isinstance(told, Unknown)
    assert "val/accuracy" in told.why
    with pytest.raises(InputError):
        goal_of("0.8")


def annealed(seed: int, n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """A loss whose floor is proportional to the learning rate, under a cosine: the end gains what the start cannot show."""
    rate = 0.5 * (1 + np.cos(np.pi * np.arange(n) / n))
    rng = np.random.default_rng(seed)
    area = np.cumsum(rate) / rate.sum()
    return rate, 1.0 + 0.6 * (area + 0.02) ** -0.5 + 0.8 * rate + 0.01 * rng.standard_normal(n)


def test_under_a_decay_the_band_reaches_to_the_better_side_and_covers() -> None:
    covered = []
    for seed in range(20):
        rate, loss = annealed(seed)
        run = make_run({"val/loss": loss[:66].tolist(), "lr": rate[:66].tolist()}, facts={"total_steps": 99})
        told = forecast(Study(run))
        assert isinstance(told, Forecast)
        assert told.middle[-1] - told.low[-1] > told.high[-1] - told.middle[-1]
        covered.append(told.low[-1] <= float(np.median(loss[-3:])) <= told.high[-1])
    assert np.mean(covered) >= 0.85


def test_early_in_a_decay_it_refuses() -> None:
    rate, loss = annealed(1)
    run = make_run({"val/loss": loss[:45].tolist(), "lr": rate[:45].tolist()}, facts={"total_steps": 99})
    assert isinstance(forecast(Study(run)), Unknown)


def test_it_refuses_across_a_cut_that_is_planned() -> None:
    config = (
        "name: x\nscale: 2\nuse_amp: false\nnetwork_g:\n  type: a\nlogger:\n  print_freq: 1\ntrain:\n  ema_decay: 0\n  grad_clip: false\n"
        "  optim_g:\n    type: AdamW\n    lr: 0.001\n  scheduler:\n    type: MultiStepLR\n    milestones: [{}]\n    gamma: 0.1\n"
        "  total_iter: 99\n"
    )
    seen = {"val/psnr": (20 + 10 * curve(2, 60)).tolist(), "lr": [1e-3] * 60}
    told = forecast(Study(make_run(seen, config=config.format(80))))
    assert isinstance(told, Unknown)
    assert "plan cuts the learning rate" in told.why
    assert isinstance(forecast(Study(make_run(seen, config=config.format(150)))), Forecast)


@pytest.mark.parametrize("text", ["0.8", "=0.8", " =0.8", "val/accuracy=", "val/accuracy=high", "val/accuracy=nan"])
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no target"):
        goal_of(text)


def test_a_target_is_reached_by_a_level_and_not_by_one_lucky_evaluation() -> None:
    lucky = [0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.6, 0.6, 0.6, 0.6, 0.6]
    run = make_run({"val/accuracy": lucky}, start=1.0)
    assert reached(run, Goal("val/accuracy", 0.5)) == 10.0  # three of the five up to there
    assert reached(run, Goal("val/accuracy", 0.8)) is None
    assert reached(run, Goal("val/bleu", 0.1)) is None
    plain = replace(run, series={"val/accuracy": replace(run.series["val/accuracy"], better="unknown")})
    assert reached(plain, Goal("val/accuracy", 0.1)) is None, "nobody knows which way it should go"
