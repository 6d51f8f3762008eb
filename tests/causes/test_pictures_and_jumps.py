"""Scores of pictures, jumps of a loss, and rates beyond any recipe: what each of them speaks for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from made_runs import falling, named, top, weigh

from wheeltapper.causes import Excluded
from wheeltapper.causes._look import before_nan, scale_fell_first
from wheeltapper.diagnosis.diagnose import ask_run, diagnose_run
from wheeltapper.run.model import Run
from wheeltapper.signs import below_baseline
from wheeltapper.testing import make_run

SR = below_baseline.CASES["finding"]["config"]


def bits(cause: str, run: Run, group: str) -> float:
    found = weigh(cause, run)
    assert not isinstance(found, Excluded), found
    return sum(e.bits for e in found if e.group == group)


def pictures(psnr: list[float], ssim: list[float], loss: list[float] | None = None, spacing: float = 10) -> Run:
    rows = loss or falling(len(psnr), 0.2, 0.02, 0.0005).tolist()
    return make_run({"train/loss": rows, "val/psnr": psnr, "val/ssim": ssim}, spacing=spacing, start=spacing, config=SR)


def test_other_pictures_and_smaller_ones() -> None:
    """Validation against another picture has no structure in common; against a smaller copy it has."""
    other = pictures([10.5 + 0.01 * i for i in range(20)], [0.08 + 0.001 * i for i in range(20)])
    smaller = pictures([11.5 - 0.02 * i for i in range(20)], [0.47 - 0.005 * i for i in range(20)], falling(20, 0.027, 0.02, 0.0002).tolist(), 1000)
    assert named(diagnose_run(other), "eval-broken") > 2 * named(diagnose_run(other), "eval-resized-images")
    assert top(diagnose_run(smaller), 1) == ["eval-resized-images"]
    assert bits("eval-resized-images", other, "structure") < 0


def test_structure_that_turns_round_is_a_loss_the_wrong_way_round() -> None:
    run = pictures([12.0 - 0.05 * i for i in range(20)], [0.15 - 0.035 * i for i in range(20)])
    assert top(diagnose_run(run), 1) == ["wrong-loss-sign"]
    unrelated = pictures([10.5] * 20, [0.1 - 0.001 * i for i in range(20)])
    assert named(diagnose_run(unrelated), "wrong-loss-sign") < 0.1


def test_pictures_that_training_leads_away() -> None:
    """The score of hardly trained weights was better than the last one: the evaluation follows the training, the targets are wrong."""
    psnr = [17.0, 18.0, *(18.0 - 0.4 * i for i in range(10)), *([13.7] * 18)]
    ssim = [0.58, 0.6, *(0.6 - 0.035 * i for i in range(10)), *([0.25] * 18)]
    run = pictures(psnr, ssim, falling(30, 0.4, 0.1, 0.002).tolist())
    assert bits("eval-broken", run, "away") < 0
    assert named(diagnose_run(run), "labels-shuffled") > named(diagnose_run(run), "eval-broken")


def test_pictures_by_heart_cost_a_decibel_or_two() -> None:
    def turned(lost: float) -> Run:
        rise = [8.0 + 23.0 * (1 - 0.7**i) + 0.01 * (i % 3) for i in range(20)]
        return pictures([*rise, *(31.0 - lost * i / 39 for i in range(40))], [0.9] * 60, falling(60, 0.2, 0.005, 0.0002).tolist())

    assert bits("overfitting", turned(6.0), "size") < 0
    assert bits("overfitting", turned(2.0), "size") == 0


def test_a_jump_after_nothing_was_learned_is_no_bad_data() -> None:
    def jumped(early: list[float]) -> Run:
        n = len(early)
        loss = [2.31 - 0.9 * (a - 0.1) + 0.01 * (i % 3) for i, a in enumerate(early)] + [12.0 + 0.1 * (i % 3) for i in range(3 * n)]
        scores = [*early, *([0.1] * (3 * n))]
        return make_run({"train/loss": loss, "val/accuracy": scores, "val/loss": loss}, config="num_classes: 10\n")

    learned, never = jumped([0.1 + 0.05 * i for i in range(12)]), jumped([0.1 + 0.004 * (i % 2) for i in range(12)])
    assert bits("bad-data-from-step", never, "before") < 0
    assert bits("bad-data-from-step", learned, "before") == 0
    assert top(diagnose_run(learned), 1) == ["bad-data-from-step"]


def test_a_few_falling_rows_before_a_nan() -> None:
    calm = make_run({"train/loss": [0.06, 0.045, 0.035, 0.03, 0.028, math.nan]}).series["train/loss"]
    rough = make_run({"train/loss": [0.06, 0.045, 0.07, 0.03, 0.028, math.nan]}).series["train/loss"]
    assert [e.bits for e in before_nan(calm, 5.0)] == [1.0]
    assert before_nan(rough, 5.0) == []


def test_a_jump_that_was_made_good_before_a_nan() -> None:
    rows = [0.1, 0.05, 0.03, 0.025, 0.025, 0.024, 0.13, 0.025, 0.025, 0.024, math.nan]
    jumped = make_run({"train/loss": rows}).series["train/loss"]
    young = make_run({"train/loss": [1.0, *(0.1 - 0.005 * i for i in range(9)), math.nan]}).series["train/loss"]
    assert [e.bits for e in before_nan(jumped, 10.0)] == [-1.0]
    assert [e.bits for e in before_nan(young, 10.0)] == [1.0]


@pytest.mark.parametrize(("peak", "least", "most"), [(0.011, 1.4, 1.7), (0.1, 2.8, 3.2), (5.0, 3.9, 4.1)])
def test_a_rate_is_weighed_by_how_far_beyond_any_recipe_it_is(peak: float, least: float, most: float) -> None:
    loss = [*falling(10).tolist(), *(2.0**i for i in range(12)), *([math.nan] * 10)]
    rates = [peak * min(1.0, (i + 1) / 20) for i in range(32)]
    run = make_run({"train/loss": loss, "lr": rates}, config="optimizer: adamw\n")
    found = weigh("lr-too-high", run)
    assert not isinstance(found, Excluded)
    raw = [e.bits for e in found if e.group == "level"]
    assert least * 0.5 <= raw[0] <= most * 1.5


def test_a_softmax_taken_twice_shows_in_loss_against_accuracy() -> None:
    """Computed, not drawn: the loss of a softmax of a softmax for a network that grows sure of 70 % of its items."""
    classes, losses, shares = 10, [], []
    for row in range(30):
        sure = 6.0 * (1 - 0.85**row)
        p = math.exp(sure) / (math.exp(sure) + classes - 1)  # of the class it favours
        rest = (1 - p) / (classes - 1)
        norm = math.log(math.exp(p) + (classes - 1) * math.exp(rest))
        right = 0.1 + 0.6 * (1 - 0.85**row)
        losses.append(norm - right * p - (1 - right) * rest)
        shares.append(right)
    twice = make_run({"train/loss": losses, "train/accuracy": shares, "val/accuracy": shares}, config="num_classes: 10\n")
    assert diagnose_run(twice).verdict == "ill"
    assert top(diagnose_run(twice), 1) == ["double-softmax"]
    once = [2.3 - 2.6 * (a - 0.1) for a in shares]
    plain = make_run({"train/loss": once, "train/accuracy": shares, "val/accuracy": shares}, config="num_classes: 10\n")
    assert diagnose_run(plain).verdict == "sound"


def test_weights_that_are_whole_while_the_loss_is_nan() -> None:
    """A finite validation loss after the NaN: no weight is NaN, so no rate broke them and more than one batch is undefined."""
    loss = [*falling(20).tolist(), *([math.nan] * 40)]
    rates = [0.02 * min(1.0, (i + 1) / 18) for i in range(60)]
    config = "optimizer: adamw\ncurriculum: {enabled: true}\n"
    whole = make_run({"train/loss": loss, "val/loss": falling(60).tolist(), "lr": rates}, config=config)
    lost = make_run({"train/loss": loss, "val/loss": loss, "lr": rates}, config=config)
    assert isinstance(weigh("lr-too-high", whole), Excluded)
    assert top(diagnose_run(whole), 1) == ["loss-not-finite"]
    assert not isinstance(weigh("lr-too-high", lost), Excluded)
    assert bits("nan-batch", whole, "weights") < 0
    assert bits("nan-batch", lost, "weights") == 0


def test_a_loss_that_jumped_first_makes_the_scale_fall() -> None:
    def collapse(jump: float) -> Run:
        loss = [0.02 + 0.0005 * (i % 3) for i in range(60)]
        loss[28] = 0.02 * jump
        loss[55:] = [math.nan] * 5
        scale = [65536.0] * 30 + [65536.0 / 2**i for i in range(1, 31)]
        return make_run({"train/loss": loss, "loss_scale": scale}, config="amp: fp16\n")

    assert scale_fell_first(ask_run(collapse(1.0)).case)
    assert not scale_fell_first(ask_run(collapse(40.0)).case)


def test_a_jump_at_the_first_row_of_a_launch_may_be_anything() -> None:
    losses = [3.0 * 0.97**i + 0.35 + 0.01 * ((i * 7) % 5 - 2) for i in range(150)] + [1.8 + 0.01 * ((i * 7) % 5 - 2) for i in range(40)]
    through = make_run({"train/loss": losses}, spacing=20)
    at = through.series["train/loss"].at[150]
    again = replace(
        through,
        segments=(
            replace(through.segments[0], end=at - 20),
            replace(through.segments[0], index=1, start=at, kind="resume"),
        ),
    )
    assert bits("bad-data-from-step", again, "resume") < 0 == bits("bad-data-from-step", through, "resume")
