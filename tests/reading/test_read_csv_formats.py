"""Lightning, Keras, ultralytics, timm, Stable-Baselines, OpenAI logger, and tables of no known make."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wheeltapper.reading import head_of, ranked, readings_of
from wheeltapper.reading.record import Points, Reading

RECORDS = Path(__file__).resolve().parents[1] / "records"


def read(name: str, format: str) -> Reading:
    (reading,) = readings_of(RECORDS / name)
    assert reading.format == format
    return reading


def series(reading: Reading, name: str) -> Points:
    (found,) = [p for p in reading.points if p.name == name]
    return found


def same(values: np.ndarray, wanted: list[float]) -> None:
    np.testing.assert_array_equal(values, np.array(wanted, dtype=float))


def texts(reading: Reading) -> str:
    return "\n".join(note.text for note in reading.notes)


def test_lightning_rows_are_sparse_and_nan_is_not_a_hole() -> None:
    reading = read("lightning/metrics.csv", "Lightning metrics.csv")
    step = series(reading, "train_loss_step")
    same(step.values, [0.75, np.nan, np.inf])
    same(step.at, [49, 99, 149])
    same(step.lines, [3, 4, 7])
    assert (step.clock, step.window) == ("step", "batch")
    epoch = series(reading, "train_loss_epoch")
    same(epoch.values, [0.7, 0.4])
    assert epoch.window == "epoch"
    same(series(reading, "val_loss").clocks["epoch"], [0, 1])
    same(series(reading, "lr-AdamW").at, [0])  # a row of LearningRateMonitor tells no epoch
    assert reading.notes == ()


def test_lightning_is_known_by_its_holes_when_renamed(tmp_path: Path) -> None:
    copy = tmp_path / "renamed.csv"
    copy.write_bytes((RECORDS / "lightning/metrics.csv").read_bytes())
    assert readings_of(copy)[0].format == "Lightning metrics.csv"


def test_keras_appends_without_a_header_and_writes_na() -> None:
    reading = read("keras/training.log", "Keras CSVLogger")
    loss = series(reading, "loss")
    same(loss.at, [0, 1, 0, 1, 2])  # the second training begins again: it is told, not repaired
    same(loss.values, [1.25, 1.0, 1.5, np.nan, 0.5])
    assert (loss.clock, loss.window, loss.split) == ("epoch", "epoch", "train")
    held = series(reading, "val_loss")
    same(held.values, [1.1, 1.4, np.inf, 0.6])
    assert (held.window, held.split) == ("eval", "val")
    same(series(reading, "val_accuracy").values, [0.55, 0.45, 0.65, 0.7])
    same(series(reading, "val_accuracy[1]").values, [0.8])


def test_keras_with_semicolons_and_decimal_commas() -> None:
    reading = read("keras/training_semicolon.log", "Keras CSVLogger")
    same(series(reading, "loss").values, [1.25, 1.0, 1.5, np.nan])
    same(series(reading, "lr").values, [0.001] * 4)


def test_ultralytics_generations() -> None:
    five = read("ultralytics/results_v5.csv", "ultralytics results.csv")
    same(series(five, "train/box_loss").values, [0.1175, 0.1075])
    same(series(five, "metrics/precision").values, [0.0052, np.nan])
    assert series(five, "x/lr0").split is None
    eight = read("ultralytics/results_v8.csv", "ultralytics results.csv")
    held = series(eight, "val/box_loss")
    same(held.values, [1.75, np.nan, 1.5])
    same(held.at, [1, 2, 3])
    same(held.clocks["second"], [10.5, 21.0, 31.5])
    assert (held.split, held.window) == ("val", "eval")
    assert series(eight, "train/cls_loss").window == "epoch"
    assert [p.name for p in eight.points if p.name in ("epoch", "time")] == []


def test_yolov5_results_txt_has_no_header() -> None:
    reading = read("ultralytics/results.txt", "YOLOv5 results.txt")
    same(series(reading, "train/cls_loss").values, [0, np.nan])
    same(series(reading, "metrics/mAP_0.5:0.95").values, [0.2091, 0.3161])
    same(series(reading, "val/obj_loss").values, [0.001953, 0.001873])
    memory = series(reading, "gpu_mem")
    assert (memory.unit, memory.values[0], memory.clock) == ("GB", 3.01, "epoch")
    assert [(f.name, f.value) for f in reading.facts] == [("total_epochs", 3)]


def test_yolov3_wrote_f1_where_yolov5_writes_map() -> None:
    reading = read("ultralytics/results_v3.txt", "YOLOv5 results.txt")
    same(series(reading, "metrics/F1").values, [0.267, 0.375, 0.480])
    assert "metrics/mAP_0.5:0.95" not in {p.name for p in reading.points}


def test_timm_lists_tensors_and_thousands() -> None:
    reading = read("timm/summary.csv", "timm summary.csv")
    same(series(reading, "train_lr").values, [1e-6, 5e-5, 4e-5])
    same(series(reading, "train_lr[1]").values, [1e-7, 5e-6, 4e-6])
    same(series(reading, "train_loss").values, [6.25, 5.75, np.nan])
    same(series(reading, "eval_loss").values, [5.5, 5.25, 5.0])  # tensor(5.0)
    same(series(reading, "eval_top5").values, [2.5, 5.5, 1012.5])
    assert series(reading, "eval_loss").clocks["second"][0] == 1639102424.25


def test_timm_groups_that_agree_are_one_series(tmp_path: Path) -> None:
    file = tmp_path / "summary.csv"
    file.write_text('epoch,train_loss,train_lr,eval_loss\n0,1.5,"[0.1, 0.1]",2.5\n1,1.25,"[0.2, 0.2]",2.0\n')
    assert [p.name for p in readings_of(file)[0].points] == ["train_loss", "train_lr", "eval_loss"]


def test_sb3_monitor_counts_episodes_and_their_steps() -> None:
    reading = read("sb3/0.monitor.csv", "SB3 monitor.csv")
    reward = series(reading, "r")
    same(reward.values, [-13.5, -44.25, np.nan])
    assert reward.clock == "row"
    same(reward.clocks["step"], [11, 40, 100])
    same(reward.clocks["second"], [1.25, 1.5, 2.75])
    same(reward.lines, [3, 4, 5])
    assert {f.name: f.value for f in reading.facts} == {"t_start": 1652871292.5, "env_id": "Ant-v3"}


def test_sb3_progress() -> None:
    reading = read("sb3/progress.csv", "SB3 progress.csv")
    loss = series(reading, "train/loss")
    same(loss.values, [0.75, np.nan])
    same(loss.at, [4096, 6144])
    same(loss.clocks["second"], [3.25, 5.0])
    assert series(reading, "rollout/ep_rew_mean").window == "running"


def test_openai_logger() -> None:
    reading = read("openai/progress.csv", "OpenAI logger progress.csv")
    same(series(reading, "loss_q0").values, [97.5, 28.25])
    norm = series(reading, "grad_norm")
    same(norm.values, [125.5, 72.25, np.inf])
    same(norm.clocks["sample"], [256, 2816, 5376])
    assert norm.clock == "step"


def test_a_table_of_no_known_make() -> None:
    reading = read("generic/quirks.csv", "CSV table")
    loss = series(reading, "loss")
    same(loss.values, [2.5, np.nan, np.inf, -np.inf, 2.25])
    same(loss.at, [1000, 2000, 3000, 4000, 500])
    same(loss.lines, [2, 3, 5, 7, 10])
    assert loss.clock == "step"
    same(np.diff(loss.clocks["second"]), [60, 60, 0, 3480])
    same(series(reading, "acc").values, [12.5, 25.0, 37.5, 15.0])
    same(series(reading, "lr").values, [1e-3, 1e-3, 1e-4, 1e-4, 1e-3])
    (launch,) = reading.events
    assert (launch.kind, launch.line) == ("start", 9)
    told = texts(reading)
    assert "3 merge-conflict marks left out" in told
    assert "`model`: 5 cells not numbers" in told
    assert "the last line is cut in the middle of a row" in told


@pytest.mark.parametrize(
    ("text", "names", "clock"),
    [
        ("1,2.5\n2,2.25\n3,2.0\n", ["column 2"], "row"),  # the first only numbers the rows
        (",loss\n0,2.5\n1,2.25\n", ["loss"], "row"),  # what pandas makes of its index
        ("step  loss\n1     2.5\n2     2.25\n", ["loss"], "step"),
        ("step\tloss\n1\t2.5\n2\t2.25\n", ["loss"], "step"),
        ("iteration;loss\n1;2,5\n2;2,25\n", ["loss"], "step"),
        ("\ufeffepoch,loss\n1,2.5\n2,2.25\n", ["loss"], "epoch"),
        ("epoch,loss\r1,2.5\r2,2.25\r", ["loss"], "epoch"),
        ("loss\n2.5\n2.25\n", ["loss"], "row"),
        ("tokens,loss\n1000,2.5\n2000,2.25\n", ["loss"], "token"),
    ],
)
def test_shapes_of_tables(tmp_path: Path, text: str, names: list[str], clock: str) -> None:
    file = tmp_path / "log.csv"
    file.write_bytes(text.encode())
    (reading,) = readings_of(file)
    assert [p.name for p in reading.points] == names
    assert {p.clock for p in reading.points} == {clock}
    same(reading.points[-1].values[:2], [2.5, 2.25])


def test_a_header_with_other_columns_in_the_middle(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("step,loss\n1,2.5\n2,2.0\nstep,acc,loss\n1,0.5,2.25\n")
    (reading,) = readings_of(file)
    same(series(reading, "loss").values, [2.5, 2.0, 2.25])
    same(series(reading, "acc").lines, [5])


def test_a_row_too_long_is_told_and_does_not_shift_others(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("step,loss,acc\n1,2.5,0.5\n2,2.0\n3,1.75,0.75,9\n")
    (reading,) = readings_of(file)
    same(series(reading, "loss").values, [2.5, 2.0, 1.75])
    same(series(reading, "acc").values, [0.5, 0.75])
    assert "longer than the header" in texts(reading)
    assert "shorter than the header" in texts(reading)


def test_utf16_tables_are_read(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_bytes("step,loss\n1,2.5\n2,2.25\n".encode("utf-16"))
    (reading,) = readings_of(file)
    same(series(reading, "loss").values, [2.5, 2.25])


def test_known_formats_win_over_the_generic_reader() -> None:
    for name in ("lightning/metrics.csv", "timm/summary.csv", "sb3/progress.csv", "openai/progress.csv"):
        claims = list(ranked(head_of(RECORDS / name)))
        generic = [claim for claim, module in claims if module.__name__.endswith("generic_csv")]
        assert generic
        assert generic[0] <= 0.3 < claims[0][0]


def test_rows_of_two_splits_are_two_series(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("epoch,phase,loss\n1,train,2.5\n1,valid,3.5\n2,train,2.0\n2,valid,3.25\n")
    (reading,) = readings_of(file)
    assert [(p.name, p.split, p.values.tolist(), p.at.tolist()) for p in reading.points] == [
        ("loss", "train", [2.5, 2.0], [1, 2]),
        ("loss", "val", [3.5, 3.25], [1, 2]),
    ]


def test_a_column_that_names_runs_gives_a_reading_each(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("seed,epoch,loss\n1,1,2.5\n1,2,2.0\n7,1,2.25\n7,2,1.75\n")
    readings = readings_of(file)
    assert [(r.key, r.points[0].values.tolist(), r.points[0].lines.tolist()) for r in readings] == [
        ("seed=1", [2.5, 2.0], [2, 3]),
        ("seed=7", [2.25, 1.75], [4, 5]),
    ]
    file.write_text("run,epoch,loss\na,1,2.5\na,2,2.0\nb,1,2.25\nb,2,1.75\n")
    assert [r.key for r in readings_of(file)] == ["a", "b"]


def test_units_that_are_written_are_told(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("step,acc,mem,mixed\n1,12.5%,3.5GB,5s\n2,25%,4GB,6%\n3,nan,4GB,7s\n")
    (reading,) = readings_of(file)
    assert {p.name: p.unit for p in reading.points} == {"acc": "%", "mem": "GB", "mixed": None}
    same(series(reading, "acc").values, [12.5, 25, np.nan])


def test_the_time_an_epoch_took_is_not_a_clock(tmp_path: Path) -> None:
    file = tmp_path / "history.csv"
    file.write_text("epoch,train_loss,valid_loss,time\n0,2.5,2.0,01:20\n1,2.25,1.75,01:10\n2,2.0,1.5,01:15\n")
    (reading,) = readings_of(file)
    assert {c for p in reading.points for c in p.clocks} == set()
    assert "`time`: 3 cells" in texts(reading)


def test_tensorboard_export_is_named_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "run-exp1-tag-train_loss.csv"
    file.write_text("Wall time,Step,Value\n1700000000.5,0,2.5\n1700000010.5,100,NaN\n")
    (reading,) = readings_of(file)
    (loss,) = reading.points
    assert (reading.format, loss.name, loss.at.tolist()) == ("TensorBoard CSV export", "train_loss", [0, 100])
    same(loss.clocks["second"], [1700000000.5, 1700000010.5])


def test_wandb_export_holds_several_runs(tmp_path: Path) -> None:
    file = tmp_path / "wandb_export.csv"
    header = '"Step","red-1 - val/loss","red-1 - val/loss__MIN","red-1 - val/loss__MAX","blue-2 - val/loss"'
    file.write_text(header + '\n"0","2.5","2.5","2.5","3.5"\n"10","2.0","2.0","2.0",""\n')
    readings = readings_of(file)
    assert [(r.key, r.points[0].name, r.points[0].values.tolist()) for r in readings] == [
        ("red-1", "val/loss", [2.5, 2.0]),
        ("blue-2", "val/loss", [3.5]),
    ]


def test_the_steps_an_episode_took_are_not_a_clock(tmp_path: Path) -> None:
    lengths = [640, 512, 700, 433, 655, 391, 702, 520, 618, 477]
    table = tmp_path / "training_log.csv"
    rows = [f"{6001 + i},{i * 3.5},{n}" for i, n in enumerate(lengths)]
    table.write_text("episode,reward,steps\n" + "\n".join(rows) + "\n")
    reward = series(readings_of(table)[0], "reward")
    assert reward.clock == "row"  # one row an episode
    table.write_text(
        "episode,reward,steps\n" + "\n".join(f"{i},{i * 3.5},{50 if i % 4 else 5}" for i in range(1, 12)) + "\n"
    )
    assert series(readings_of(table)[0], "reward").clock == "row"  # also where most take as long as they may
    table.write_text("reward,steps\n" + "\n".join(f"{i * 3.5},{n}" for i, n in enumerate(lengths)) + "\n")
    assert series(readings_of(table)[0], "reward").clock == "row"
    anew = [f"{e},{s},{1 / (e + s)}" for e in range(1, 9) for s in (299, 599)]
    table.write_text("epoch,step,train_loss\n" + "\n".join(anew) + "\n")
    assert (
        series(readings_of(table)[0], "train_loss").clock == "step"
    )  # counted anew in every epoch, to the same number


def test_time_steps_counted_anew_by_every_learn_are_one_training(tmp_path: Path) -> None:
    rows = [f"{256 * (i % 4 + 1)},{i % 4 + 1},{10 * i + 10},{i}" for i in range(12)]
    table = tmp_path / "progress.csv"
    header = "time/total_timesteps,time/iterations,train/n_updates,rollout/ep_rew_mean"
    table.write_text(f"{header}\n" + "\n".join(rows) + "\n")
    reward = series(readings_of(table)[0], "rollout/ep_rew_mean")
    assert reward.clock == "step"
    same(reward.at, [10 * i + 10 for i in range(12)])
    turns = [f"{256 * (i % 2 + 1)},{i % 2 + 1},{10 * (2 * (i // 4) + i % 2) + 10},{i}" for i in range(24)]  # of two agents
    table.write_text(f"{header}\n" + "\n".join(turns) + "\n")
    assert series(readings_of(table)[0], "rollout/ep_rew_mean").clock == "row"
    again = [f"{256 * (i % 4 + 1)},{i % 4 + 1},{10 * (i % 4) + 10},{i}" for i in range(24)]  # launched six times
    table.write_text(f"{header}\n" + "\n".join(again) + "\n")
    assert series(readings_of(table)[0], "rollout/ep_rew_mean").clock == "step"


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("model,accuracy,f1\nresnet,0.9,0.9\nvgg,0.8,0.8\nlenet,0.6,0.6\nsvm,0.3,0.3\n", "model"),
        ("src,dst,success\n0,1,6300\n0,4,20120\n1,8,14270\n2,9,7039\n", "src"),
    ],
)
def test_a_list_of_results_is_no_training(tmp_path: Path, text: str, subject: str) -> None:
    table = tmp_path / "results.csv"
    table.write_text(text)
    reading = readings_of(table)[0]
    assert not reading.points
    assert f"another {subject}" in texts(reading)


def test_rows_with_words_of_their_own_may_be_a_training(tmp_path: Path) -> None:
    table = tmp_path / "log.csv"
    table.write_text("checkpoint,train_loss,accuracy\nfirst.pt,0.9,0.3\nsecond.pt,0.8,0.4\nthird.pt,0.6,0.5\n")
    assert {p.name for p in readings_of(table)[0].points} == {"train_loss", "accuracy"}
    table.write_text("epoch,name,accuracy\n1,a,0.3\n2,b,0.4\n3,c,0.5\n4,d,0.6\n")
    assert series(readings_of(table)[0], "accuracy").clock == "epoch"


def test_zeros_of_epochs_that_were_not_evaluated_are_holes(tmp_path: Path) -> None:
    table = tmp_path / "results.csv"
    header = "epoch, train/box_loss, metrics/mAP_0.5, val/box_loss"
    table.write_text(f"{header}\n" + "".join(f"{e}, {0.1 - 0.01 * e}, 0, 0\n" for e in range(5)) + "5, 0.05, 0.4, 0.06\n")
    reading = readings_of(table)[0]
    same(series(reading, "val/box_loss").values, [0.06])
    assert "5 rows hold zeros" in texts(reading)
    table.write_text(f"{header}\n" + "".join(f"{e}, {0.1 - 0.01 * e}, 0, {0.2 + 0.01 * e}\n" for e in range(5)))
    same(series(readings_of(table)[0], "metrics/mAP_0.5").values, [0.0] * 5)  # evaluated, and nothing was found
    table.write_text(f"{header}\n" + "".join(f"{e}, {0.1 - 0.01 * e}, 0, 0\n" for e in range(5)) + "5, 0, 0\n")
    assert len(series(readings_of(table)[0], "metrics/mAP_0.5").values) == 6  # throughout, and the last row is cut
