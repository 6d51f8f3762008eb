"""Made records give the number that the page derives, and Unknown without what it needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, observations
from wheeltapper.run.model import Run
from wheeltapper.study import Absent, Study
from wheeltapper.testing import make_run

ALL = {o.id: o for o in observations()}


def ask(name: str, run: Run) -> Reading | None:
    try:
        answer = Study(run).call(ALL[name].observe)
    except Absent:
        return None
    return None if isinstance(answer, Unknown) else answer


def value(name: str, run: Run) -> float:
    reading = ask(name, run)
    assert reading is not None
    return reading.value


def line(first: float, last: float, n: int = 40) -> list[float]:
    return [first + (last - first) * i / (n - 1) for i in range(n)]


def fall(first: float, last: float, n: int = 40) -> list[float]:
    return [last + (first - last) * 0.8**i for i in range(n)]


def test_return_gain() -> None:
    assert value("return-gain", make_run({"ep_rew_mean": line(20.0, 100.0)})) == pytest.approx(4.0, abs=0.6)
    assert value("return-gain", make_run({"ep_rew_mean": [20.0] * 40})) == pytest.approx(0.0)
    assert ask("return-gain", make_run({"val_accuracy": line(0.1, 0.9)})) is None


@pytest.mark.parametrize(
    ("series", "least"),
    [
        ({"kl": fall(3.0, 1e-4), "train_loss": fall(3.0, 1.0)}, 2.5),
        ({"d_loss": fall(1.3, 1e-4), "g_loss": line(1.0, 9.0)}, 2.0),
        ({"rewards/accuracies": line(0.5, 0.1)}, 1.0),
        ({"val_mase": fall(2.0, 1.3)}, 1.0),
        ({"val_psnr": line(10.0, 14.0)}, 1.5),
        ({"val_cer": [1.0] * 20}, 1.0),
        ({"ep_rew_mean": [20.0] * 40}, 0.9),
    ],
)
def test_own_numbers_beyond_their_band(series: dict[str, Sequence[float]], least: float) -> None:
    assert value("own-numbers", make_run(series)) >= least


@pytest.mark.parametrize(
    "series",
    [
        {"kl": line(1.0, 12.0), "train_loss": fall(3.0, 1.0)},
        {"d_loss": [1.3] * 30, "g_loss": [0.8] * 30},
        {"rewards/accuracies": line(0.5, 0.9)},
        {"val_mase": fall(2.0, 0.8)},
        {"val_psnr": line(20.0, 34.0)},
    ],
)
def test_own_numbers_inside(series: dict[str, Sequence[float]]) -> None:
    assert value("own-numbers", make_run(series)) == 0.0


def test_own_numbers_need_one() -> None:
    assert ask("own-numbers", make_run({"train_loss": fall(2.0, 1.0)})) is None


def test_evaluation_load() -> None:
    config = "batch_size: 10\nn_val: 100\nn_train: 1000\n"
    each_step = make_run({"val_loss": fall(2.0, 1.0, 50), "train_loss": fall(2.0, 1.0, 50)}, start=1, config=config)
    assert value("evaluation-load", each_step) == pytest.approx(1.0, abs=0.05)
    rare = make_run({"val_loss": fall(2.0, 1.0, 50), "train_loss": fall(2.0, 1.0, 50)}, spacing=50, config=config)
    assert value("evaluation-load", rare) < 0
    assert ask("evaluation-load", make_run({"val_loss": fall(2.0, 1.0)})) is None


def test_data_wait() -> None:
    assert value("data-wait", make_run({"data_time": [0.3] * 20, "batch_time": [0.5] * 20})) == pytest.approx(0.6)
    assert ask("data-wait", make_run({"batch_time": [0.5] * 20})) is None


def test_pace_change() -> None:
    assert value("pace-change", make_run({"samples_per_s": line(400.0, 100.0, 30)})) > 1.0
    assert value("pace-change", make_run({"samples_per_s": [400.0 + (-1) ** i for i in range(30)]})) < 0.1
    up_and_down = [400.0] * 10 + [100.0] * 10 + [300.0] * 10
    assert value("pace-change", make_run({"samples_per_s": up_and_down})) == 0.0
    assert ask("pace-change", make_run({"samples_per_s": [400.0] * 4})) is None


def test_too_good() -> None:
    config = "vocab_size: 20\n"
    told = make_run({"train_loss": fall(3.0, 0.01, 200), "val_loss": fall(3.0, 0.01, 200)}, config=config)
    assert value("too-good", told) > 1.7
    plain = make_run({"train_loss": fall(3.0, 2.0, 60), "val_loss": fall(3.0, 2.0, 60)}, config=config)
    assert value("too-good", plain) < 1.0
    assert ask("too-good", make_run({"train_loss": fall(3.0, 0.01), "val_loss": fall(3.0, 0.01)})) is None


def test_training_above_held_out() -> None:
    series = {"train_loss": fall(2.0, 1.2), "val_loss": fall(2.0, 0.5)}
    assert value("train-above-held-out", make_run(series, config="dropout: 0.0\nlr: 0.1\n")) < -0.7
    assert ask("train-above-held-out", make_run(series, config="dropout: 0.3\nlr: 0.1\n")) is None
    assert ask("train-above-held-out", make_run(series)) is None
    apart = {"train_loss": fall(200.0, 100.0), "val_loss": fall(2.0, 1.0)}
    assert ask("train-above-held-out", make_run(apart, config="dropout: 0.0\nlr: 0.1\n")) is None


def test_a_constant_factor_is_no_gap() -> None:
    apart = make_run({"train_loss": fall(200.0, 100.0), "val_loss": fall(2.0, 1.0)})
    assert ask("gap-at-end", apart) is None
    assert ask("gap-at-start", apart) is None


def test_the_first_gap_lies_between_rows() -> None:
    """A loss that falls by halves between two rows leaves no gap at an evaluation in between."""
    run = make_run({"train_loss": [8.0, 4.0, 2.0, *fall(1.0, 0.5, 40)], "val_loss": [6.0, 3.0, 1.5, *fall(1.0, 0.5, 40)]})
    assert value("gap-at-start", run) == pytest.approx(0.0)


def test_mixed_samples_have_no_gap() -> None:
    series = {"train_loss": fall(2.0, 1.2), "val_loss": fall(2.0, 0.5)}
    assert ask("gap-at-end", make_run(series)) is not None
    assert ask("gap-at-end", make_run(series, config="mixup_alpha: 0.4\nlr: 0.1\n")) is None


def test_a_loss_that_shifts_by_plan_is_not_blamed() -> None:
    rising = [*fall(2.0, 1.0, 30), *line(1.0, 1.6, 30)]
    assert value("train-loss-lost", make_run({"train_loss": rising})) > 0.3
    assert ask("train-loss-lost", make_run({"train_loss": rising, "kl_weight": line(0.0, 1.0, 60)})) is None


def test_the_rate_of_adapters() -> None:
    base = "optimizer: adamw\nlr: 0.001\n"
    series = {"train_loss": fall(2.0, 1.0)}
    assert value("rate-size", make_run(series, config=base)) == pytest.approx(0.0)
    assert value("rate-size", make_run(series, config=base + "lora_r: 8\nlora_alpha: 16\n")) == pytest.approx(0.0)


def test_cycles_of_the_rate_are_a_plan() -> None:
    cycle = [1e-3 * (0.5 + 0.5 * math.cos(math.pi * i / 20)) for i in range(20)]
    assert ask("rate-rises-again", make_run({"lr": cycle * 3})) is None
    assert value("rate-rises-again", make_run({"lr": cycle + cycle[::-1]})) > 0.9
    assert value("warm-up-share", make_run({"lr": [9e-4, *cycle[9:], *cycle * 2]})) == 0.0


def test_a_score_without_zero_has_no_skill() -> None:
    assert ask("skill", make_run({"ep_rew_mean": line(20.0, 100.0, 60)})) is None
    run = make_run({"val_loss": fall(2.0, 1.0, 60), "train_loss": fall(2.0, 1.0, 60)})
    assert value("skill", run) == pytest.approx(1 - 1.0 / 1.8, abs=0.01)  # the first level is the median of three values


def test_neighbours_say_nothing_of_a_loss_of_pairs() -> None:
    run = {"train_loss": fall(4.4, 2.4), "val_loss": fall(4.2, 2.4), "val_knn_acc": line(0.3, 1.0)}
    assert ask("loss-against-score", make_run(run, config="num_classes: 6\n")) is None


def test_samples_of_a_tuned_model_or_a_graph_are_not_counted() -> None:
    series = {"train_loss": fall(2.0, 1.0)}
    assert value("samples", make_run(series, config="n_train: 100\nlr: 0.1\n")) == pytest.approx(2.0)
    assert ask("samples", make_run(series, config="n_train: 100\nn_nodes: 300\nlr: 0.1\n")) is None
    assert ask("samples", make_run(series, config="n_train: 100\nlora_r: 8\nlr: 0.1\n")) is None


def test_a_bare_score_beside_a_named_one_is_of_training() -> None:
    study = Study(make_run({"psnr": line(20.0, 44.0), "val_psnr": line(20.0, 38.0)}))
    assert [s.raw for s in study.get("val_metrics")] == ["val_psnr"]


def test_a_score_that_does_not_follow_the_loss() -> None:
    loss = fall(2.0, 0.1)
    assert value("score-follows-loss", make_run({"train_loss": loss, "val_miou": [0.15] * 40})) > 0.75
    assert value("score-follows-loss", make_run({"train_loss": loss, "val_miou": fall(0.1, 0.9)})) < 0.3
    assert ask("score-follows-loss", make_run({"train_loss": loss, "val_miou": [0.95] * 40})) is None
    assert ask("score-follows-loss", make_run({"train_loss": loss})) is None


def test_samples_that_never_fool() -> None:
    won = {"d_loss": [1.0] * 30, "g_loss": line(1.0, 9.0, 30), "d_real": [0.9] * 30, "d_fake": fall(0.5, 1e-5, 30)}
    assert value("own-numbers", make_run(won)) > 0.5
