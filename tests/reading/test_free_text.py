"""Logs in the words of their author: which reader has them, and what their lines mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from text_logs import series

from wheeltapper.reading import readings_of
from wheeltapper.reading._pairs import loose_pairs
from wheeltapper.reading.record import Reading
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run


def one(tmp_path: Path, text: str, name: str = "train.log") -> Reading:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    (reading,) = readings_of(path)
    return reading


def run_of(tmp_path: Path, text: str) -> Run:
    one(tmp_path, text)
    (run,) = read_runs(tmp_path / "train.log")
    return run


def test_dicts_as_python_prints_them(tmp_path: Path) -> None:
    rows = [
        f"{{'loss': {2.0 - 0.1 * i:.4f}, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': {i // 3 / 100}}}"
        for i in range(9)
    ]
    reading = one(tmp_path, "\n".join(rows))
    loss = series(reading, "loss")
    assert loss.clock == "epoch"
    assert loss.at.tolist() == [0, 0, 0, 0.01, 0.01, 0.01, 0.02, 0.02, 0.02]
    assert np.isnan(series(reading, "grad_norm").values).all()


def test_an_epoch_printed_with_two_digits_is_no_new_launch(tmp_path: Path) -> None:
    rows = [f"{{'loss': {2.0 - 0.1 * i:.4f}, 'epoch': {i // 3 / 100}}}" for i in range(9)]
    run = run_of(tmp_path, "\n".join(rows))
    assert len(run.segments) == 1
    assert len(run.series["train/loss"]) == 9


def test_a_verb_is_no_name(tmp_path: Path) -> None:
    rows = [
        f"Epoch {e}, Step {s}, used time {3.5 * e:.2f} (s), avg loss so far is {1.0 / (1 + e):.4f}"
        for e in range(4)
        for s in (25, 50)
    ]
    rows += [f"Epoch {e}, val loss is {2.0 / (1 + e):.4f}" for e in range(6)]
    run = run_of(tmp_path, "\n".join(rows))
    assert "train/loss" in run.series
    assert "val/loss" in run.series
    assert not any(s.quantity == "inception_score" for s in run.series.values())


def test_a_step_that_begins_anew_with_every_epoch_counts_batches(tmp_path: Path) -> None:
    rows = [f"Epoch {e}, Step {s}, loss is {1.0 / (1 + e + s / 100):.5f}" for e in range(6) for s in (25, 50, 75)]
    run = run_of(tmp_path, "\n".join(rows))
    loss = run.series["train/loss"]
    assert len(run.segments) == 1
    assert len(loss) == 18
    assert np.all(np.diff(loss.at) > 0)


def test_a_reader_that_finds_no_curve_lets_the_next_one_try(tmp_path: Path) -> None:
    rows = ["2020-05-23 19:12:24,208 - main - INFO - Epoch: 1/50 starts with lr 0.001"]
    rows += [
        f"2020-05-23 19:13:{i:02},000 - main - INFO - Iter: {100 * i} | Train Loss: {9.0 / (i + 1):.4f} | Dev Loss: {8.0 / (i + 1):.4f} | Dev F1-macro: {0.05 * i:.4f} | *"
        for i in range(12)
    ]
    reading = one(tmp_path, "\n".join(rows))
    assert len(series(reading, "Dev F1-macro").values) == 12


def test_blocks_divided_by_dashes(tmp_path: Path) -> None:
    rows = []
    for i in range(1, 6):
        rows += [f"Epoch: {i}/30", f"Train Loss: {7 / i:.4f} - Train Perplexity: {1500 / i:.2f}"]
        rows += [f"Valid Loss: {6 / i:.4f} - Valid Perplexity: {690 / i:.2f}", "-" * 30]
    reading = one(tmp_path, "\n".join(rows))
    assert len(series(reading, "Valid Loss").values) == len(series(reading, "Train Perplexity").values) == 5


def test_what_is_printed_behind_a_bar(tmp_path: Path) -> None:
    rows = [
        f"agent train:   0%|          | {i}/2000 [00:0{i}<54:16,  1.63s/it][step={i + 1}] episode={i + 1}.0000 return={-90.5 + i:.4f} length=26.0000"
        for i in range(9)
    ]
    reading = one(tmp_path, "\n".join(rows))
    found = series(reading, "return")
    assert found.clock == "step"
    assert found.at.tolist() == list(range(1, 10))
    assert found.values[0] == -90.5


def test_a_label_between_the_name_of_a_meter_and_its_value(tmp_path: Path) -> None:
    rows = []
    for e in range(3):
        rows += [f"Epoch: [{e}][{i}/20]\tTime 1.1 (1.1)\tLoss {3.0 - e:.4f} ({3.0 - e:.4f})" for i in (0, 10)]
        rows += [f" * Prec@1     {50.0 + e:.3f} Prec@5 80.394", f" * Prec@1 001 {60.0 + e:.3f} Prec@5 001 78.840"]
    reading = one(tmp_path, "\n".join(rows))
    assert series(reading, "Prec@1").values.tolist() == [50, 51, 52]
    assert series(reading, "Prec@1 001").values.tolist() == [60, 61, 62]


def test_an_overflow_is_an_event(tmp_path: Path) -> None:
    rows = [
        f"NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: {64 / 2**i}" for i in range(8)
    ]
    reading = one(tmp_path, "\n".join(rows))
    assert not reading.points
    assert sum(e.count for e in reading.events if e.kind == "overflow") == 8


def test_a_position_that_never_moves_is_no_launch_each(tmp_path: Path) -> None:
    rows = [f"{{'loss': 0.0, 'grad_norm': nan, 'learning_rate': {1e-4 + 1e-5 * i}, 'epoch': 0.0}}" for i in range(9)]
    run = run_of(tmp_path, "\n".join(rows))
    assert len(run.segments) == 1
    assert len(run.series["train/loss"]) == 9


def test_boxes_of_the_openai_logger_and_of_stable_baselines(tmp_path: Path) -> None:
    old = ["Logging to logs"]
    for i in range(6):
        old += [
            "-" * 40,
            f"| mean 100 episode reward | {20 + i} |",
            f"| total/steps | {1000 * i} |",
            "| train/loss_critic | 1.5e+04 |",
            "-" * 40,
        ]
    reading = one(tmp_path, "\n".join(old), "log.txt")
    found = series(reading, "mean 100 episode reward")
    assert found.clock == "step"
    assert found.at.tolist() == [0, 1000, 2000, 3000, 4000, 5000]
    new = []
    for i in range(6):
        new += ["-" * 36, "| rollout/           |          |", f"|    ep_rew_mean     | {22 + i}     |"]
        new += ["| time/              |          |", f"|    total_timesteps | {2048 * (i + 1)}     |", "-" * 36]
    reading = one(tmp_path, "\n".join(new), "train.log")
    assert series(reading, "rollout/ep_rew_mean").at.tolist() == [2048 * (i + 1) for i in range(6)]


def test_a_printed_setting_is_no_row(tmp_path: Path) -> None:
    rows = ["MODEL:", "  IOU_LABELS: [0, -1, 1]", "  NMS_THRESH_TEST: 0.5"] * 9
    assert not one(tmp_path, "\n".join(rows)).points


def test_the_place_of_a_range_of_batches_is_its_end(tmp_path: Path) -> None:
    rows = [
        f"INFO:root:Epoch[{e}] Batch [0-{b}]\tSpeed: 25.20 samples/sec\taccuracy=0.{e}{b // 20}\tL1Loss={1.0 / (1 + e + b / 100):.4f}"
        for e in range(3)
        for b in (20, 40, 60)
    ]
    run = run_of(tmp_path, "\n".join(rows))
    loss = next(s for s in run.series.values() if s.quantity == "loss")
    assert len(loss) == 9
    assert np.all(np.diff(loss.at) > 0)


def test_the_log_of_build_nanogpt(tmp_path: Path) -> None:
    rows = []
    for step in range(0, 1000, 250):
        rows += [f"{step} val {10 - step / 200:.4f}", f"{step} hella 0.2476", f"{step} train {10.1 - step / 200:.6f}"]
    run = run_of(tmp_path, "\n".join(rows))
    assert run.series["val/loss"].at.tolist() == [0, 250, 500, 750]
    assert len(run.series["train/loss"]) == 4


def test_a_value_before_a_colon(tmp_path: Path) -> None:
    rows = [f"INFO:root:count: {50 * i}, loss:{200.0 - i:.4f}: " for i in range(8)]
    assert series(one(tmp_path, "\n".join(rows)), "loss").values[0] == 200.0


def test_steps_under_lines_that_tell_the_epoch(tmp_path: Path) -> None:
    rows = []
    for e in range(1, 6):
        rows.append(f"[2022-06-26 21:43:2{e},027]Epoch: {e:04}")
        rows += [
            f"[2022-06-26 21:43:2{e},483]iter:{i:04} loss_train: {2 / e - i / 1000:.4f} acc_train: 0.3594"
            for i in (20, 40, 60)
        ]
    run = run_of(tmp_path, "\n".join(rows))
    loss = next(s for s in run.series.values() if s.quantity == "loss")
    assert len(run.segments) == 1
    assert len(loss) == 15
    assert np.all(np.diff(loss.at) > 0)


def test_a_value_before_a_bar_is_not_taken_from_its_front() -> None:
    """Bars glued on one line each begin with "loss 0.1:": the last of them counts, and the bar's reader knows it."""
    assert loose_pairs("Epoch 0, training loss 0.088:   0%|          | 0/182", 8, []) == []
    assert [f.name for f in loose_pairs("count: 50, loss:228.901291: ", 0, [])] == ["count", "loss"]


def test_a_log_that_begins_with_a_hole(tmp_path: Path) -> None:
    rows = [f"step {i} | loss {4 - 0.1 * i:.4f} | lr 2.99e-04" for i in range(8)]
    (tmp_path / "train.log").write_bytes(bytes(9000) + "\n".join(rows).encode())
    (reading,) = readings_of(tmp_path / "train.log")
    assert len(series(reading, "loss").values) == 8


def test_the_place_in_the_code_is_no_number(tmp_path: Path) -> None:
    glog = "I1229 23:55:59.560392 27153 solver.cpp:229] "
    run = run_of(tmp_path, "\n".join(f"{glog}Iteration {100 * i}, loss = {5 - i}" for i in range(4)))
    assert list(run.series) == ["train/loss"]
    assert run.series["train/loss"].at.tolist() == [0, 100, 200, 300]
    lines = [f"2020-12-01 20:12:48,410 - train.py[line:103] - INFO: Epoch : 1/20 - Iter : {i}/90 - Iter loss : {9 - i}"
             for i in range(5)]  # fmt: skip
    assert list(run_of(tmp_path, "\n".join(lines)).series) == ["train/loss"]


def test_three_placed_losses_are_rows_and_two_may_be_talk(tmp_path: Path) -> None:
    rows = [f"global step {i}: loss = {5 - i} (0.4 sec/step)" for i in range(70, 73)]
    assert len(series(one(tmp_path, "\n".join(rows)), "loss").values) == 3
    assert not one(tmp_path, "\n".join(rows[:2])).points
    row = "{'loss': 0.6931, 'learning_rate': 5e-07, 'rewards/margins': 0.0, 'epoch': 0.59}"
    assert series(one(tmp_path, row), "loss").values.tolist() == [0.6931]


def test_a_heading_says_the_split_of_a_line(tmp_path: Path) -> None:
    text = "".join(
        f"2018-07-27 17:05:58,802:INFO: Epoch {e}/9\n"
        f"2018-07-27 17:06:07,821:INFO: - Train metrics: accuracy: 0.{e}1 ; loss: {5 - e}.5\n"
        f"2018-07-27 17:06:08,355:INFO: - Eval metrics: accuracy: 0.{e}0 ; loss: {6 - e}.5\n"
        for e in range(1, 6)
    )
    found = run_of(tmp_path, text).series
    assert sorted(found) == ["train/accuracy", "train/loss", "val/accuracy", "val/loss"]
    assert found["val/loss"].values.tolist() == [5.5, 4.5, 3.5, 2.5, 1.5]


def test_a_score_behind_a_validation_loss_is_of_validation(tmp_path: Path) -> None:
    text = "".join(
        f"Epoch [{e}]/[9] \t {w} Phase Loss: 0.{9 - e} \t Accuracy: 0.{e}\n"
        for e in range(6)
        for w in ("Training", "Validation")
    )
    found = run_of(tmp_path, text).series
    assert found["val/accuracy"].values.tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_a_score_on_the_row_of_a_step_is_of_training(tmp_path: Path) -> None:
    rows = [
        f"global_step: {i}, speed: 11.3 samples/sec, iou_shrink_map: 0.{i}, loss: {9 - i}, lr:0.001" for i in range(6)
    ]
    assert "train/iou" in run_of(tmp_path, "\n".join(rows)).series  # the only one, so no part


def test_numbers_in_quotes_in_brackets_and_after_wide_colons(tmp_path: Path) -> None:
    rows = [
        f'json_stats: {{"accuracy_cls": "0.25", "iter": {20 * i}, "loss": "{9 - i}.5", "lr": "0.0025"}}'
        for i in range(5)
    ]
    assert series(one(tmp_path, "\n".join(rows)), "loss").values.tolist() == [9.5, 8.5, 7.5, 6.5, 5.5]
    rows = [f"train --- Current batch:{200 * i}/1600  loss:[ {0.9 - 0.1 * i:.4f}]" for i in range(5)]
    assert "train/loss" in run_of(tmp_path, "\n".join(rows)).series
    rows = [f"训练次数：{100 * i}, Loss：{2 - 0.1 * i:.2f}" for i in range(5)]
    loss = series(one(tmp_path, "\n".join(rows)), "Loss")
    assert (loss.clock, loss.at.tolist()) == ("step", [0, 100, 200, 300, 400])


def test_the_batch_of_an_epoch_without_a_word(tmp_path: Path) -> None:
    rows = [f"Epoch  6,   {50 * i}/  725; acc:   0.00; ppl:   {4 - 0.1 * i:.2f};" for i in range(1, 7)]
    found = run_of(tmp_path, "\n".join(rows)).series
    assert len(found["train/perplexity"]) == len(found["train/accuracy"]) == 6
    rows = [
        f"(trainer:737) INFO: 1epoch:train:{1000 * i + 1}-{1000 * i + 1000}batch: loss={250 - i}, acc=0.{i}"
        for i in range(5)
    ]
    assert series(one(tmp_path, "\n".join(rows)), "loss").split == "train"


def test_basicsr_as_it_wrote_at_first(tmp_path: Path) -> None:
    rows = [
        f"19-08-09 08:2{i}:25.996 - INFO: <epoch: 86, iter: 107,{i}00, lr:2.500e-05> l_g_pix: 1.{i}e-03"
        for i in range(4)
    ]
    reading = one(tmp_path, "\n".join(rows))
    assert len(series(reading, "l_g_pix").values) == 4
    assert len(series(reading, "lr").values) == 4


def test_what_paddle_model_fit_prints(tmp_path: Path) -> None:
    text = "The loss value printed in the log is the current step, and the metric is the average value.\n"
    for e in range(1, 4):
        text += f"Epoch {e}/3\n"
        text += "".join(
            f"step  {s}/30 - loss: {3.5 - e - s / 100:.4f} - acc: 0.{e}{s // 10} - 91ms/step\n" for s in (10, 20, 30)
        )
        text += "Eval begin...\n"
        text += "".join(f"step {s}/20 - loss: {4 - e}.{s} - acc: 0.{e}5 - 8ms/step\n" for s in (10, 20))
        text += "Eval samples: 10000\n"
    run = run_of(tmp_path, text)
    assert run.formats == ("Paddle Model.fit console",)
    assert run.series["train/loss"].values.tolist() == [2.4, 2.3, 2.2, 1.4, 1.3, 1.2, 0.4, 0.3, 0.2]
    assert run.series["val/loss"].values.tolist() == [3.20, 2.20, 1.20]
    assert run.series["val/accuracy"].values.tolist() == [0.15, 0.25, 0.35]


def test_the_examples_of_torch_print_images_of_an_epoch_and_a_test_behind_it(tmp_path: Path) -> None:
    text = "".join(
        "".join(
            f"Train Epoch: {e} [{b * 64}/60000 ({b * 64 / 600:.0f}%)]\tLoss: {1 / e + 0.001 * b:.6f}\n"
            for b in range(0, 930, 300)
        )
        + f"\nTest set: Average loss: 0.{10 - e}505, Accuracy: 98{e}3/10000 ({90 + e}%)\n\n"
        for e in range(1, 4)
    )
    run = run_of(tmp_path, text)
    loss = run.series["train/loss"]
    assert loss.clock == "sample"
    assert loss.at.tolist()[:5] == [0, 19200, 38400, 57600, 60000]
    assert run.series["test/loss"].values.tolist() == [0.9505, 0.8505, 0.7505]
    assert run.series["test/accuracy"].values.tolist() == [91, 92, 93]
    assert [s.kind for s in run.segments] == ["first"]


def test_places_without_words(tmp_path: Path) -> None:
    dcgan = [
        f"[{e}/5][{b}/100]\tLoss_D: 0.{b + 10}\tLoss_G: 1.{b + 10}\tD(x): 0.50\tD(G(z)): 0.2{e} / 0.1{e}"
        for e in range(2)
        for b in (0, 50)
    ]
    run = run_of(tmp_path, "\n".join(dcgan * 2))
    assert run.series["train/gan_d"].at.tolist() == [0, 50, 100, 150]
    assert run.series["train/gan_fake"].values.tolist() == [0.20, 0.20, 0.21, 0.21]
    assert run.series["train/gan_fake.1"].values.tolist() == [0.10, 0.10, 0.11, 0.11]
    cifar = [f"[{e}, {b:5d}] loss: {3 - e - b / 1e4:.3f}" for e in (1, 2, 3) for b in (2000, 4000, 6000)]
    loss = run_of(tmp_path, "\n".join(cifar)).series["train/loss"]
    assert loss.clock == "epoch"
    assert loss.at.tolist()[:4] == [0.25, 0.5, 0.75, 1.25]
    quick = [f"loss: {2 - b / 9e4:.6f}  [{b:>5d}/60000]" for _ in range(3) for b in (64, 32064, 57664)]
    assert run_of(tmp_path, "\n".join(quick)).series["train/loss"].at.tolist()[2:5] == [57664, 60064, 92064]
    monai = [f"epoch {e}/9\n" + "".join(f"{b}/4, train_loss: 0.{e}{b}\n" for b in range(1, 5)) for e in range(1, 4)]
    steps = run_of(tmp_path, "".join(monai)).series["train/loss"]
    assert steps.at.tolist() == list(range(1, 13))


def test_batches_and_their_epoch_are_two_series_and_the_epoch_is_no_launch(tmp_path: Path) -> None:
    lines = [
        f"Epoch {e} Batch {b} Loss {1 / e + 0.01 * b:.4f}" + ("" if b < 4 else f"\nEpoch {e} Loss {1 / e:.6f}")
        for e in range(1, 5)
        for b in range(5)
    ]
    run = run_of(tmp_path, "\n".join(lines))
    assert len(run.series["train/loss"]) == 20
    assert run.series["train/loss@epoch"].values.tolist() == [1.0, 0.5, 0.333333, 0.25]
    rows = [f"Epoch: {e} | sample loss: {1 / e + 0.01 * b:.4f}" for e in range(1, 5) for b in range(5)]
    run = run_of(tmp_path, "\n".join(rows))
    assert [s.kind for s in run.segments] == ["first"]
    assert len(run.series["train/loss"]) == 20


def test_an_evaluation_of_an_estimator_is_not_of_training(tmp_path: Path) -> None:
    lines = []
    for i in range(0, 900, 100):
        lines.append(f"INFO:tensorflow:loss = {9 - i / 100}, step = {i} (0.2 sec)")
        if i % 300 == 200:
            lines.append(
                f"INFO:tensorflow:Saving dict for global step {i}: accuracy = 0.5, global_step = {i}, loss = 77.0"
            )
    run = run_of(tmp_path, "\n".join(lines))
    assert run.series["train/loss"].values.max() == 9
    assert run.series["val/loss"].values.tolist() == [77, 77, 77]


def test_lists_remarks_and_full_stops(tmp_path: Path) -> None:
    rows = [f"epoch {e}: losses [0.{e}1, 0.{e}2, nan] lr 0.01" for e in range(1, 6)]
    run = run_of(tmp_path, "\n".join(rows))
    assert run.series["losses[1]"].values.tolist() == [0.12, 0.22, 0.32, 0.42, 0.52]
    assert np.isnan(run.series["losses[2]"].values).all()
    rows = [f"Epoch 1/3 | Iter {i}/500 | avg loss (last 100 iters) = 0.{i}" for i in range(100, 501, 100)]
    assert len(series(one(tmp_path, "\n".join(rows)), "avg loss (last 100 iters)").values) == 5
    rows = [
        f"[INFO] 3DBall. Step: {i}. Time Elapsed: 3{i} s. Mean Reward: 0.{i}. Std of Reward: 0.1. Training."
        for i in range(10, 60, 10)
    ]
    reward = run_of(tmp_path, "\n".join(rows)).series["return"]
    assert (reward.clock, reward.at.tolist()) == ("step", [10, 20, 30, 40, 50])
    rows = [
        f"[Epoch {e}/9] [Batch 1/3] [D loss: 0.{e}] [G loss: 1.{e}, adv: 0.5] ETA: 2 days, 3:10:05" for e in range(6)
    ]
    assert "duration" not in run_of(tmp_path, "\n".join(rows)).series


def test_each_domain_of_a_cyclegan_list_is_a_series(tmp_path: Path) -> None:
    rows = [
        f"(epoch: {e}, iters: 100, time: 0.29) D: 0.1{e}, 0.2{e} | G: 1.1{e}, 1.2{e} | Cyc: 0.5, 0.6 | "
        for e in range(1, 5)
    ]
    run = run_of(tmp_path, "\n".join(rows))
    assert run.series["train/gan_d.1"].values.tolist() == [0.21, 0.22, 0.23, 0.24]
    assert run.series["train/gan_g.0"].values.tolist() == [1.11, 1.12, 1.13, 1.14]
    assert run.series["Cyc[1]"].values.tolist() == [0.6] * 4


def test_the_word_before_the_epoch_says_whose_values_follow(tmp_path: Path) -> None:
    rows = []
    for epoch in range(6):
        rows += [f"TRAIN in epoch {epoch} , step {step}, loss = {2 - 0.1 * epoch}" for step in (0, 50)]
        rows.append(f"TEST in epoch{epoch}, loss = {2 + 0.1 * epoch}, acc = {44.5 + epoch}%")
    run = run_of(tmp_path, "\n".join(rows))
    assert run.series["test/loss"].values[-1] == 2.5
    assert run.series["test/accuracy"].values[-1] == 49.5
    assert len(run.series["train/loss"]) == 12
    assert [f.split for f in loose_pairs("Validation epoch 3: loss 0.31 train_loss 0.28", 0, [])] == ["val", "train"]
