"""What a remedy changes follows from the settings and the record of the run."""

from __future__ import annotations

from typing import Any

import pytest
from made_runs import NOISE, at_chance, case_of, edits_of, falling

from wheeltapper.finding import Finding
from wheeltapper.rules.causes import Case
from wheeltapper.settings.practice import spread_of
from wheeltapper.simulate.baselines import edm_initial_loss_mean
from wheeltapper.testing import make_run

CURVE = {"train/loss": falling(60).tolist()}


def with_config(config: str, **facts: Any) -> Case:
    return case_of(make_run(CURVE, config=config, facts=facts))


def test_a_warmup_longer_than_the_run_becomes_a_tenth_of_it() -> None:
    run = make_run(
        at_chance(10, 60), spacing=100, config="lr: 0.001\nwarmup_steps: 200000\n", facts={"total_steps": 6000}
    )
    assert edits_of("warmup-longer-than-run", case_of(run)) == {"schedule.warmup": (200000, 600)}


def test_milestones_move_into_the_run() -> None:
    loss = [2.0 * 0.97**i + 0.8 + 0.02 * NOISE[i] for i in range(2500)]
    run = make_run(
        {"train/loss": loss, "lr": [0.1] * 2500},
        steps_per_epoch=100,
        config="lr: 0.1\noptimizer: sgd\nepochs: 25\nlr_decay_epochs: [100, 150]\n",
        facts={"total_steps": 2500, "total_epochs": 25},
    )
    (_, new) = edits_of("milestones-never-reached", case_of(run))["schedule.milestones"]
    assert 0 < min(new) < max(new) < 25


def test_a_filter_that_hides_nan_is_switched_off() -> None:
    config = "learning_rate: 0.001\noutput_dir: out\nper_device_train_batch_size: 8\nlogging_nan_inf_filter: true\n"
    assert edits_of("nan-hidden-by-logger", with_config(config)) == {"logging.nan_filter": (True, False)}


def test_a_remedy_of_memory_keeps_the_effective_batch() -> None:
    case = with_config("per_device_train_batch_size: 8\ngradient_accumulation_steps: 4\n")
    assert edits_of("out-of-memory", case) == {"batch.per_device": (8, 4), "batch.accumulation": (4, 8)}


def test_sigma_data_is_read_off_the_first_loss() -> None:
    loss = [0.2 + 2.8 * 0.95**i for i in range(40)]
    case = case_of(make_run({"train/loss": loss}, config="sigma_data: 0.5\n"))
    (_, new) = edits_of("sigma-data-mismatch", case)["diffusion.sigma_data"]
    assert edm_initial_loss_mean(new, 0.5) == pytest.approx(3.0, rel=0.05)


@pytest.mark.parametrize(
    ("cause", "config", "edits"),
    [
        ("momentum-too-high", "optimizer: sgd\nmomentum: 0.999\n", {"optimizer.momentum": (0.999, 0.9)}),
        ("momentum-too-high", "optimizer: sgd\nmomentum: 0.9\n", {}),
        (
            "momentum-too-high",
            "optimizer: adam\nbetas: [0.999, 0.9999]\n",
            {"optimizer.betas": ([0.999, 0.9999], [0.9, 0.9999])},
        ),
        ("dropout-too-high", "dropout: 0.9\n", {"augment.dropout": (0.9, 0.1)}),
        ("dropout-too-high", "dropout: 0.0\n", {}),
        ("temperature-too-high", "temperature: 10.0\n", {"loss.temperature": (10.0, 0.1)}),
        ("label-smoothing-too-strong", "label_smoothing: 0.6\n", {"loss.label_smoothing": (0.6, 0.1)}),
        ("gamma-too-low", "algo: ppo\ngamma: 0.5\n", {"rl.gamma": (0.5, 0.99)}),
        ("too-few-updates", "epochs: 2\n", {"run.epochs": (2, 20)}),
        ("early-stop-wrong-mode", "early_stop_mode: max\n", {"run.early_stop_mode": ("max", "min")}),
        ("sigma-mismatch", "P_mean: 2.0\nP_std: 1.2\n", {"diffusion.P_mean": (2.0, -1.2)}),
        ("eval-too-often", "eval_steps: 10\n", {"eval.every": (10, 100)}),
    ],
)
def test_a_setting_goes_to_what_is_usual(cause: str, config: str, edits: dict[str, Any]) -> None:
    assert edits_of(cause, with_config(config)) == edits


def test_the_rarest_setting_goes_to_the_middle_of_practice() -> None:
    case = with_config("optimizer: adamw\nlearning_rate: 0.0003\nweight_decay: 500.0\n")
    ((knob, (old, new)),) = edits_of("setting-beyond-practice", case).items()
    spread = spread_of(knob)
    assert (knob, old) == ("optimizer.weight_decay", 500.0)
    assert spread is not None
    assert spread.quantile(0.05) <= new <= spread.quantile(0.95)


def test_a_run_that_never_learned_gets_a_tenth_of_its_rate() -> None:
    run = make_run(at_chance(10, 60), config="lr: 0.004\noptimizer: adam\nnum_classes: 10\n")
    never = Finding("at-chance", "at chance", "ill", "is", series="val/accuracy", clock="step")
    assert edits_of("lr-too-high", Case(case_of(run).study, (never,))) == {"optimizer.lr": (0.004, 0.0004)}
    fell = Finding("diverged", "rose", "ill", "is", series="train/loss", clock="step")
    assert edits_of("lr-too-high", Case(case_of(run).study, (fell,))) == {"optimizer.lr": (0.004, 0.002)}
