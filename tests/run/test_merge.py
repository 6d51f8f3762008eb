"""Many files and launches into one Run: what is live, what is dead, what is told twice."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest

from wheeltapper.reading.record import Event, Points, Reading
from wheeltapper.run.clock import At, ClockError, Conversion
from wheeltapper.run.merge import merge
from wheeltapper.run.model import Run


def points(
    name: str, at: list[float], values: list[float], file: str = "a.log", first_line: int = 1, **more: object
) -> Points:
    return Points(
        name=name,
        values=np.array(values, dtype=float),
        at=np.array(at, dtype=float),
        clock="step",
        file=file,
        lines=np.arange(first_line, first_line + len(at)),
        **more,  # type: ignore[arg-type]
    )


def run_of(*columns: Points, events: tuple[Event, ...] = ()) -> Run:
    by_file: dict[str, list[Points]] = {}
    for column in columns:
        by_file.setdefault(column.file, []).append(column)
    readings = [Reading(file, "test", points=tuple(members), events=events) for file, members in by_file.items()]
    return merge(readings, name="r", root=".")


def test_a_resume_overwrites_from_where_it_began_and_keeps_the_dead_branch() -> None:
    run = run_of(points("loss", [0, 10, 20, 30, 20, 30, 40], [5, 4, 3, 2, 3.5, 2.5, 1.5]))
    live = run.series["train/loss"]
    assert live.at.tolist() == [0, 10, 20, 30, 40]
    assert live.values.tolist() == [5, 4, 3.5, 2.5, 1.5]
    (dead,) = run.dead["train/loss"]
    assert dead.values.tolist() == [3, 2]
    assert [s.kind for s in run.segments] == ["first", "resume"]
    assert run.segments[0].dead_from == 20
    assert "falls from 30 to 20" in run.segments[1].why


def test_a_relaunch_from_the_start_keeps_the_launch_that_went_furthest() -> None:
    run = run_of(points("loss", [0, 1, 2, 3, 4, 0, 1], [5, 4, 3, 2, 1, 5.5, 4.5]))
    assert run.series["train/loss"].values.tolist() == [5, 4, 3, 2, 1]
    assert [s.kind for s in run.segments] == ["first", "relaunch"]
    assert run.dead["train/loss"][0].values.tolist() == [5.5, 4.5]


def test_one_restart_seen_by_series_of_different_cadence_is_one_restart() -> None:
    loss = points("loss", [0, 10, 20, 30, 15, 25, 35], [7, 6, 5, 4, 5.5, 4.5, 3.5])
    val = Points(
        name="val_loss", values=np.array([6.0, 5.0, 5.6, 4.4]), at=np.array([0.0, 30.0, 15.0, 35.0]), clock="step",
        file="a.log", lines=np.array([1, 4, 6, 7]),
    )  # fmt: skip
    run = run_of(loss, val)
    assert len(run.segments) == 2
    assert run.series["val/loss"].at.tolist() == [0, 15, 35]


def test_lines_out_of_order_are_no_restart() -> None:
    run = run_of(points("loss", [0, 1, 2, 4, 3, 5, 6], [7, 6, 5, 3, 4, 2, 1]))
    assert len(run.segments) == 1
    assert run.series["train/loss"].at.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert run.dead == {}


def test_two_files_that_tell_the_same_are_one_series() -> None:
    exact = points("loss", [0, 10, 20], [1.2345678, 1.1, 1.0], file="state.json")
    rounded = points("train/loss", [0, 10, 20, 30], [np.float32(1.2345678), 1.1, 1.0, 0.9], file="events")
    run = run_of(exact, rounded)
    assert list(run.series) == ["train/loss"]
    assert run.series["train/loss"].at.tolist() == [0, 10, 20, 30]
    assert run.dead == {}


def test_repeated_rows_are_kept_once_and_noted() -> None:
    run = run_of(points("loss", [0, 1, 1, 2], [3, 2, 2, 1]))
    assert run.series["train/loss"].at.tolist() == [0, 1, 2]
    assert any("stand twice" in note.text for note in run.notes)


def test_nan_and_infinity_survive() -> None:
    run = run_of(points("loss", [0, 1, 2], [math.nan, math.inf, -math.inf]))
    values = run.series["train/loss"].values
    assert math.isnan(values[0])
    assert values[1:].tolist() == [math.inf, -math.inf]


def test_several_ranks_give_the_lowest_and_a_note() -> None:
    run = run_of(points("loss", [0, 1], [2, 1], rank=1), points("loss", [0, 1], [2.5, 1.5], first_line=10, rank=0))
    assert run.series["train/loss"].values.tolist() == [2.5, 1.5]
    assert any("2 ranks" in note.text for note in run.notes)


def test_every_value_can_be_traced() -> None:
    run = run_of(points("loss", [0, 10], [2, 1], file="x/train.log", first_line=41))
    assert str(run.series["train/loss"].place(1)) == "x/train.log:42"


def test_arrays_are_read_only() -> None:
    run = run_of(points("loss", [0, 10], [2, 1]))
    with pytest.raises(ValueError, match="read-only"):
        run.series["train/loss"].at[0] = 5


def test_a_log_that_says_it_resumes_starts_a_segment_without_a_fall() -> None:
    said = Event("resume", "Resuming from 20", "a.log", 4)
    run = run_of(points("loss", [0, 10, 20, 30, 40], [5, 4, 3, 2.9, 2.8]), events=(said,))
    assert [s.kind for s in run.segments] == ["first", "resume"]
    assert run.segments[1].start == 30


def test_an_accuracy_at_chance_takes_its_scale_from_its_neighbour() -> None:
    run = run_of(points("eval_top1", [0, 1, 2], [0.5, 0.6, 0.97]), points("eval_top5", [0, 1, 2], [2.5, 2.6, 4.2]))
    assert run.series["val/accuracy"].unit == "%"


def test_clocks_do_not_mix() -> None:
    with pytest.raises(ClockError, match="different clocks"):
        _ = At(4000, "step") > At(3, "epoch")
    converted = At(4000, "step").to(Conversion("step", "epoch", 1 / 1000, "1000 steps per epoch"))
    assert converted == At(4, "epoch")


def test_thousands_of_launches_cost_no_more_than_their_points() -> None:
    """Each resume begins one step after the one before and says so; comparing all with all took minutes."""
    launches = 3000
    at = [float(step) for first in range(launches) for step in range(first, first + 4)]
    events = tuple(Event("resume", "resumed", "a.log", 4 * i + 1) for i in range(1, launches))
    begun = time.process_time()
    run = run_of(points("loss", at, [math.sin(i) for i in range(len(at))]), events=events)
    assert time.process_time() - begun < 10
    live = run.series["train/loss"]
    assert live.at.tolist() == [float(step) for step in range(launches + 3)]
    assert live.lines[:3].tolist() == [1, 5, 9]
    assert len(run.segments) == launches
    assert [s.dead_from for s in run.segments[-3:]] == [launches - 2.0, launches - 1.0, None]
    assert sum(len(branch) for branch in run.dead["train/loss"]) == len(at) - len(live)


def test_a_progress_bar_on_one_line_leads_over_a_longer_name() -> None:
    """All its rows carry one line number; that is not a name that stands twice on a line."""
    steps = [float(n) for n in range(0, 40, 4)]
    bar = points("loss", steps, [3.0 - 0.01 * n for n in range(10)], file="train.out")
    bar = replace(bar, lines=np.ones(10, dtype=np.int64), clocks={"epoch": np.array(steps) / 10})
    board = points("train/loss", steps, [2.9 - 0.01 * n for n in range(10)], file="run.wandb")
    run = run_of(bar, board)
    assert run.series["train/loss"].raw == "loss"
    assert "epoch" in run.series["train/loss"].clocks
    twice = replace(bar, at=np.repeat(steps[:5], 2), lines=np.repeat(np.arange(5), 2), clocks={})
    assert run_of(twice, board).series["train/loss"].raw == "train/loss"


def test_a_bar_that_knows_only_its_epoch_gives_the_row_it_ends_with() -> None:
    epochs = np.repeat(np.arange(5.0), 8)
    values = [1.0 - 0.1 * e + (0.5 if k < 3 else 0.0) for e in range(5) for k in range(8)]
    bar = points("training loss", epochs.tolist(), values)
    bar = replace(bar, lines=np.repeat(np.arange(5), 8), clock="epoch")
    series = run_of(bar).series["train/loss"]
    assert series.at.tolist() == [0, 1, 2, 3, 4]
    assert series.values.tolist() == pytest.approx([1.0, 0.9, 0.8, 0.7, 0.6])


def test_a_name_means_what_its_company_says() -> None:
    at = [0.0, 1.0, 2.0]
    falling = [3.0, 2.0, 1.0]
    alone = run_of(points("Rec", at, falling), points("KL", at, falling))
    assert alone.series["train/loss"].better == "down"  # a reconstruction, and the one loss there is
    beside = run_of(points("prec", at, falling), points("rec", at, falling))
    assert beside.series["val/recall"].better == "up"
    table = run_of(points("train", at, falling, file="x/losses.csv"), points("valid", at, falling, file="x/losses.csv"))
    assert set(table.series) == {"train/loss", "val/loss"}
    assert run_of(points("train", at, falling, file="x/times.csv")).series["train"].quantity is None
    terms = run_of(points("l1_rec", at, falling, file="loss_log.txt"))
    assert terms.series["train/loss"].better == "down"


def test_rows_of_one_evaluation_are_one_value() -> None:
    at = [float(step) for step in (800, 1600, 2400) for _ in range(40)]
    means = [level + (0.3 / (i + 1)) * (-1) ** i for level in (0.2, 0.4, 0.6) for i in range(40)]
    run = run_of(points("Validation mIoU", at, means))
    score = run.series["val/iou"]
    assert score.at.tolist() == [800, 1600, 2400]
    assert score.values.tolist() == [means[39], means[79], means[119]]  # a running mean ends where it should
    batches = [level + 0.1 * (-1) ** i for level in (0.2, 0.4, 0.6) for i in range(40)]
    by_batch = run_of(points("val_acc", at, batches)).series["val/accuracy"]
    np.testing.assert_allclose(by_batch.values, [0.2, 0.4, 0.6])
    few = run_of(points("val_acc", [1.0, 2.0, 2.0, 3.0, 3.0, 4.0], [0.1, 0.2, 0.25, 0.3, 0.35, 0.4]))
    assert len(few.series["val/accuracy"]) == 6
    assert len(run_of(points("train_loss", at, means)).series["train/loss"]) == 120


def test_right_answers_that_are_counted_are_no_share() -> None:
    counted = run_of(points("train_acc", [1, 2, 3], [125.1, 125.4, 126.0]), points("val_acc", [1, 2, 3], [102.0, 89.0, 95.5]))
    assert {(s.name, s.quantity, s.unit) for s in counted.series.values()} == {
        ("train/accuracy", "score", "count"),
        ("val/accuracy", "score", "count"),
    }
    shares = run_of(points("train_acc", [1, 2, 3], [25.1, 45.4, 100.4]), points("val_acc", [1, 2, 3], [0.9, 39.0, 45.5]))
    assert {(s.quantity, s.unit) for s in shares.series.values()} == {("accuracy", "%")}


def test_a_part_of_another_kind_does_not_say_what_a_share_is_logged_in() -> None:
    at = [1.0, 2.0, 3.0]
    run = run_of(points("val_acc_top1", at, [0.017, 0.021, 0.026]), points("val_acc_mean_pos", at, [7.4, 7.2, 6.9]))
    assert run.series["val/accuracy"].unit == "fraction"
    by_part = run_of(points("val_acc_cats", at, [0.5, 0.7, 0.9]), points("val_acc_dogs", at, [41.0, 52.0, 63.0]))
    assert run_units(by_part) == {"%"}


def run_units(run: Run) -> set[str | None]:
    return {series.unit for series in run.series.values()}
