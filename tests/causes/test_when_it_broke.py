"""What is said of the moment a run broke: on which clock it lies, and what the rate had to do with it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from wheeltapper.causes import Case, Excluded, bad_data_from_step, no_warmup, static_loss_scale
from wheeltapper.diagnosis.diagnose import diagnose_run
from wheeltapper.finding import Finding
from wheeltapper.run.model import Run
from wheeltapper.signals import Signals
from wheeltapper.testing import make_run

NOISE = np.random.default_rng(3)
ADAM = "optimizer: adamw\nlearning_rate: 0.02\n"


def first(run: Run) -> str:
    return diagnose_run(run).causes[0].id


def noisy(level: list[float], width: float = 0.02) -> list[float]:
    return [x * (1 + width * float(NOISE.standard_normal())) for x in level]


def falling(rows: int) -> list[float]:
    return noisy([0.5 + 2.0 * 0.97**i for i in range(rows)])


def warmed(rows: int, peak: float) -> list[float]:
    return [peak * min(1.0, (i + 1) / 20) for i in range(rows)]


def test_an_onset_is_moved_between_clocks() -> None:
    made = make_run({"train/loss": falling(60)}, steps_per_epoch=10, spacing=1.0)
    late = Finding("not-finite", "", "ill", "is", series="train/loss@epoch", clock="epoch", onset=3.0)
    case = Case(Signals(made), (late,))
    assert case.since("epoch") == 3.0
    steps = case.since("step")
    assert steps is not None
    assert 25 <= steps <= 40
    native = replace(late, series="train/loss", clock="step", onset=33.0)
    assert Case(Signals(made), (late, native)).since("step", "not-finite") == 33.0
    assert Case(Signals(made), (late,)).since("step", "diverged") is None


def test_a_nan_out_of_the_blue_is_not_blamed_on_a_rate_that_was_borne() -> None:
    loss = [*falling(120), *[math.nan] * 40]
    broken = make_run({"train/loss": loss, "lr": warmed(160, 0.02)}, config=ADAM)
    said = diagnose_run(broken)
    shares = {c.id: c.probability for c in said.causes}
    assert said.verdict == "ill"
    assert shares["nan-batch"] > 3 * shares.get("lr-too-high", 0.0)


def test_a_loss_that_grows_before_the_nan_at_the_top_of_the_warm_up_is_the_rate() -> None:
    loss = [*falling(18), *noisy([1.0 * 2.0**i for i in range(12)]), *[math.nan] * 20]
    assert first(make_run({"train/loss": loss, "lr": warmed(50, 0.02)}, config=ADAM)) == "lr-too-high"


def test_a_loss_that_only_ever_grows_is_maximised() -> None:
    loss = noisy([2.3 * 1.6**i for i in range(60)])
    assert first(make_run({"train/loss": loss, "lr": warmed(60, 0.001)})) == "wrong-loss-sign"


def test_a_scale_that_stood_still_for_a_short_time_is_no_fixed_scale() -> None:
    def weigh(rows: int) -> object:
        made = make_run({"train/loss": falling(rows), "loss_scale": [65536.0] * rows}, spacing=10.0)
        return static_loss_scale.weigh(Case(Signals(made), ()))

    assert isinstance(weigh(100), Excluded)
    assert not isinstance(weigh(400), Excluded)


def test_a_jump_at_the_turn_is_no_overfitting() -> None:
    train = [*falling(100), *noisy([3.0 - 0.01 * i for i in range(60)])]
    val = [*[0.5 + 2.0 * 0.97**i for i in range(100)], *[2.5] * 60]
    ranked = [c.id for c in diagnose_run(make_run({"train/loss": train, "val/loss": val})).causes]
    assert ranked[0] == "bad-data-from-step"
    assert "overfitting" not in ranked[:2]


def test_a_frozen_score_is_no_best_so_far() -> None:
    score = [29.1, 29.8, 30.2, 30.39, *[30.4035] * 40]
    said = diagnose_run(make_run({"val/psnr": score, "train/loss": falling(44)}))
    assert said.verdict == "ill"
    assert said.causes[0].id != "best-so-far-logged"


def test_a_blown_up_training_loss_beside_a_held_out_score_at_its_best_is_not_ill() -> None:
    loss = [0.5, 3.0, 60.0, 900.0, 30.0, 4.0, *noisy([0.5] * 100)]
    score = [0.9 - 0.8 * 0.95**i for i in range(106)]
    assert diagnose_run(make_run({"train/loss": loss})).verdict == "ill"
    assert diagnose_run(make_run({"train/loss": loss, "val/accuracy": score})).verdict == "sound"


def test_norms_that_carry_the_loss_scale_do_not_make_a_learning_run_ill() -> None:
    config = "optim: sgd\nlearning_rate: 0.1\nmax_grad_norm: 1.0\nfp16: true\nper_device_train_batch_size: 8\nmax_steps: 100\nlogging_steps: 1\n"
    series = {"train/loss": falling(100), "grad_norm": noisy([2.0e4] * 100), "loss_scale": [65536.0] * 100}
    assert diagnose_run(make_run(series, config=config)).verdict == "sound"


def sinking(rows: int, start: float, end: float) -> list[float]:
    return noisy([end + (start - end) * 0.93**i for i in range(rows)], 0.002)


def led_away(loss: list[float], psnr: list[float]) -> Run:
    return make_run(
        {"train/loss": loss, "val/psnr.set5": psnr, "lr": warmed(len(loss), 0.02)}, config=ADAM, spacing=10
    )


def test_a_rate_is_not_blamed_for_scores_that_fall_while_the_training_loss_falls_on() -> None:
    away = diagnose_run(led_away(falling(120), sinking(120, 24.0, 14.0)))
    assert away.verdict == "ill"
    assert away.causes[0].id == "labels-shuffled"
    assert "below its first evaluation" in away.causes[0].evidence[0].text
    assert {c.id: c.probability for c in away.causes}.get("lr-too-high", 0.0) < 0.05
    # Where the training loss breaks as well, it is the rate.
    broken = led_away([*falling(30), *noisy([4.0 + 0.02 * i for i in range(90)])], sinking(120, 24.0, 14.0))
    assert {c.id: c.probability for c in diagnose_run(broken).causes}.get("labels-shuffled", 0.0) < 0.05
    back = [*noisy([0.5 + 2.0 * 0.9**i for i in range(40)]), *noisy([0.55 + 0.012 * i for i in range(80)])]
    worse = diagnose_run(led_away(back, sinking(120, 24.0, 14.0)))
    assert {c.id: c.probability for c in worse.causes}.get("labels-shuffled", 0.0) < 0.05


def test_a_score_by_data_set_speaks_where_it_fell_on_all_of_them() -> None:
    loss, fell = falling(120), sinking(120, 24.0, 14.0)
    rose = noisy([30.0 - 6.0 * 0.95**i for i in range(120)], 0.001)
    both = {"train/loss": loss, "val/psnr.set5": fell, "val/psnr.urban": fell}
    assert diagnose_run(make_run(both, spacing=10)).verdict == "ill"
    assert diagnose_run(make_run({**both, "val/psnr.urban": rose}, spacing=10)).verdict == "sound"
    # An adversarial loss trades distortion for looks.
    gan = {"gan_d": noisy([0.69] * 120), "gan_g": noisy([0.69] * 120)}
    falls = noisy([28.0 - 3.5 * min(1.0, i / 60) for i in range(120)], 0.001)
    traded = make_run({"train/loss_d": gan["gan_d"], "train/loss_g": gan["gan_g"], "val/psnr.set5": falls}, spacing=10)
    assert diagnose_run(traded).verdict != "ill"


def test_what_was_seen_once_is_not_learned_by_heart() -> None:
    def turned(steps_per_epoch: int) -> Run:
        loss = noisy([1.0 + 3.0 * 0.97**i for i in range(200)], 0.005)
        val = noisy([*[1.2 + 3.0 * 0.93**i for i in range(80)], *[1.25 + 0.02 * i for i in range(120)]], 0.004)
        return make_run({"train/loss": loss, "val/loss": val}, spacing=10, steps_per_epoch=steps_per_epoch)

    shares = [{c.id: c.probability for c in diagnose_run(turned(n)).causes} for n in (100, 4000)]
    assert shares[0]["overfitting"] > 0.8
    assert shares[1].get("overfitting", 0.0) < 0.3


def test_a_gap_at_the_level_of_guessing_is_overfitting_only_where_the_training_set_is_known_by_heart() -> None:
    def shares(right: float, held: float) -> dict[str, float]:
        series = {
            "train/loss": noisy([2.2 * 0.93**i + 0.3 for i in range(60)]),
            "train/accuracy": [right - (right - 0.1) * 0.9**i for i in range(60)],
            "val/loss": noisy([2.31 - 0.03 * i if i < 8 else 2.07 + 0.03 * (i - 8) for i in range(60)], 0.004),
            "val/accuracy": noisy([0.1 + (held - 0.1) * min(1.0, i / 10) for i in range(60)], 0.01),
        }
        said = diagnose_run(make_run(series, clock="epoch", config="num_classes: 10\nlr: 0.1\n"))
        assert said.verdict == "ill"
        assert "gap-at-guessing" in {f.id for f in said.findings}
        return {c.id: c.probability for c in said.causes}

    learned_by_heart, not_known = shares(1.0, 0.40), shares(0.85, 0.18)
    assert learned_by_heart["overfitting"] > 0.7
    assert learned_by_heart.get("eval-broken", 0.0) < 0.1
    assert not_known.get("overfitting", 0.0) < 0.6
    assert not_known["eval-broken"] + not_known["eval-normalisation-mismatch"] > 0.2
    assert "over-confidence" not in not_known


def test_what_breaks_after_the_loss_scale_has_collapsed_did_not_make_it_fall() -> None:
    rows = 160
    scale = [65536.0 * 0.5 ** min(i, 60) for i in range(rows)]
    loss = [*noisy([0.05 + 0.1 * 0.9**i for i in range(70)]), *noisy([0.12] * (rows - 70))]
    psnr = [*noisy([27.0 - 4.0 * 0.9**i for i in range(70)], 0.002), *noisy([18.5] * (rows - 70), 0.002)]
    run = make_run(
        {"train/loss": loss, "val/psnr": psnr, "loss_scale": scale, "lr": warmed(rows, 0.012)},
        config="optimizer: adamw\nlearning_rate: 0.012\nfp16: true\n",
    )
    said = diagnose_run(run)
    assert said.causes[0].id == "loss-scale-collapse"
    assert said.causes[0].probability > 0.9  # that the loss rose is no evidence against it
    weighed = bad_data_from_step.weigh(Case(Signals(run), said.findings))
    assert not isinstance(weighed, Excluded)
    assert any("collapsed before" in e.text for e in weighed)


def test_a_loss_far_above_its_beginning_is_not_the_data() -> None:
    exploded = make_run({"train/loss": [*noisy([6.0] * 30, 0.01), *noisy([3000.0] * 30, 0.01)]})
    changed = make_run({"train/loss": [*noisy([2.3 * 0.97**i + 0.5 for i in range(60)], 0.01), *noisy([2.2] * 30, 0.01)]})
    assert {c.id: c.probability for c in diagnose_run(exploded).causes}.get("bad-data-from-step", 0.0) < 0.3
    assert first(changed) == "bad-data-from-step"


def test_a_slow_rise_has_no_step_and_is_not_the_rate_that_falls_meanwhile() -> None:
    rows = 60
    rise = noisy([1.41 + 0.22 * (i / rows) ** 1.5 for i in range(rows)], 0.004)
    falls = [5e-5 * (1 - 0.8 * i / rows) for i in range(rows)]
    shares = {c.id: c.probability for c in diagnose_run(make_run({"train/loss": rise, "lr": falls})).causes}
    assert shares.get("bad-data-from-step", 0.0) < 0.2
    assert shares.get("lr-too-high", 0.0) < 0.2
    few = [1.45, 1.43, 1.41, 1.406, 1.42, 1.44, 1.46, 1.48, 1.50, 1.58, 1.59, 1.62, 1.63]
    weighed = bad_data_from_step.weigh(Case(Signals(made := make_run({"train/loss": few})), diagnose_run(made).findings))
    assert not isinstance(weighed, Excluded)
    assert not any("at once" in e.text for e in weighed)


def test_a_rate_that_rises_all_along_the_record_is_a_warm_up() -> None:
    run = make_run(
        {"train/loss": [8.3, 9.1, math.nan, math.nan, math.nan], "lr": [5.98e-4, 5.99e-4, 6e-4, 6.01e-4, 6.02e-4]}
    )
    assert isinstance(no_warmup.weigh(Case(Signals(run), diagnose_run(run).findings)), Excluded)


def test_batches_that_cost_exactly_the_same_do_not_reach_the_output() -> None:
    same = diagnose_run(make_run({"train/loss": [10.8259] * 40, "lr": [3e-4] * 40}))
    slow = diagnose_run(make_run({"train/loss": noisy([10.83] * 40, 0.003), "lr": [1e-9] * 40}))
    assert same.causes[0].id == "output-collapse"
    assert {c.id: c.probability for c in same.causes}.get("lr-too-low", 0.0) < 0.1
    assert "output-collapse" not in {c.id for c in slow.causes if c.probability > 0.1}


def test_a_nan_right_after_the_lowest_loss_so_far_is_not_the_rate() -> None:
    run = make_run({"train/loss": [*falling(60), *[math.nan] * 140]}, config=ADAM)  # the rate is not logged
    shares = {c.id: c.probability for c in diagnose_run(run).causes}
    assert shares["nan-batch"] > shares.get("lr-too-high", 0.0)
