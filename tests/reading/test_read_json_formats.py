"""HF trainer_state, LLaMA-Factory, DETR-style log.txt, OpenMMLab, Detectron2, StyleGAN, generic JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from wheeltapper.reading import readings_of
from wheeltapper.reading.record import Points, Reading

RECORDS = Path(__file__).resolve().parents[1] / "records"


def read(name: str, format: str) -> Reading:
    (reading,) = readings_of(RECORDS / name)
    assert reading.format == format
    return reading


def series(reading: Reading, name: str, split: str | None = None) -> Points:
    (found,) = [p for p in reading.points if p.name == name and split in (None, p.split)]
    return found


def same(values: np.ndarray, wanted: list[float]) -> None:
    np.testing.assert_array_equal(values, np.array(wanted, dtype=float))


def facts(reading: Reading) -> dict[str, object]:
    return {fact.name: fact.value for fact in reading.facts}


def texts(reading: Reading) -> str:
    return "\n".join(note.text for note in reading.notes)


# ---------------------------------------------------------------- HF


def test_hf_state() -> None:
    reading = read("hf_state/trainer_state.json", "HF trainer_state.json")
    loss = series(reading, "loss")
    same(loss.values, [2.5, np.nan, 2.25])
    same(loss.at, [10, 20, 30])
    same(loss.clocks["epoch"], [0.25, 0.5, 0.75])
    lines = (RECORDS / "hf_state/trainer_state.json").read_text().split("\n")
    assert [lines[n - 1].strip() for n in loss.lines.tolist()] == ["{"] * 3
    assert (loss.clock, loss.window, loss.split) == ("step", "window", "train")
    same(series(reading, "grad_norm").values, [np.inf, 1.5, -np.inf])
    held = series(reading, "eval_loss")
    assert (held.values.tolist(), held.window, held.split) == ([1.75], "eval", "val")
    same(series(reading, "rewards/margins").values, [-0.25])
    assert "`remaining_time`: 2 cells not numbers" in texts(reading)


def test_hf_state_facts_settings_and_best_checkpoint() -> None:
    reading = read("hf_state/trainer_state.json", "HF trainer_state.json")
    told = facts(reading)
    assert told["total_steps"] == 80
    assert told["total_epochs"] == 2
    assert told["best_metric"] == 1.75
    assert told["steps_per_epoch"] == 40
    # The mean over the whole training is not the last point of the loss curve.
    assert told["summary/train_loss"] == 2.4
    assert "train_loss" not in {p.name for p in reading.points}
    (tree,) = reading.configs
    assert (tree.get("logging_steps"), tree.get("train_batch_size")) == (10, 4)
    leaf = tree.leaf("logging_steps")
    assert leaf is not None
    assert leaf.line == 48
    (best,) = reading.checkpoints
    assert (best.path, best.step, best.exists) == ("out/checkpoint-20", 20, False)


def test_hf_state_cut_anywhere_keeps_whole_entries(tmp_path: Path) -> None:
    data = (RECORDS / "hf_state/trainer_state.json").read_bytes()
    file = tmp_path / "trainer_state.json"
    for size in range(300, len(data), 7):
        file.write_bytes(data[:size])
        (reading,) = readings_of(file)
        loss = [p for p in reading.points if p.name == "loss"]
        whole = data[:size].count(b'"step": 10\n    }')
        assert (len(loss) > 0) == (whole > 0)
        if b"save_steps" not in data[:size]:
            assert any(note.level == "lost" for note in reading.notes) or not loss


def test_hf_state_with_a_damaged_entry_and_conflict_marks(tmp_path: Path) -> None:
    text = (RECORDS / "hf_state/trainer_state.json").read_text()
    file = tmp_path / "trainer_state.json"
    text = text.replace('"loss": NaN,', '"loss": N#N,')
    file.write_text(text.replace('      "step": 30\n', '<<<<<<< HEAD\n      "step": 30\n=======\n>>>>>>> b\n', 1))
    (reading,) = readings_of(file)
    same(series(reading, "loss").values, [2.5, 2.25])
    assert "1 damaged entries" in texts(reading)
    assert "merge-conflict marks" in texts(reading)


def test_hf_state_on_one_line_numbers_its_entries(tmp_path: Path) -> None:
    file = tmp_path / "trainer_state.json"
    rows = [{"step": i, "epoch": i / 10, "loss": 1 / i} for i in range(1, 400)]
    file.write_text(json.dumps({"global_step": 399, "log_history": rows, "max_steps": 1000}))
    (reading,) = readings_of(file)
    same(series(reading, "loss").lines, list(range(1, 400)))


# ---------------------------------------------------------------- JSON lines


def test_llama_factory() -> None:
    reading = read("llama_factory/trainer_log.jsonl", "LLaMA-Factory trainer_log.jsonl")
    loss = series(reading, "loss")
    same(loss.values, [1.9, np.nan, 1.7])
    same(loss.at, [5, 10, 15])
    same(loss.clocks["second"], [30, 60, 86500])
    same(loss.clocks["token"], [45000, 90000, 135000])
    assert series(reading, "eval_loss").split == "val"
    assert facts(reading) == {"total_steps": 20}
    assert "the last line is cut in the middle of a row" in texts(reading)
    assert "`remaining_time`" in texts(reading)


def test_detr_log_with_launches_conflicts_and_glued_rows() -> None:
    reading = read("jsonl_log/log.txt", "JSON-lines log.txt (DETR/DeiT/MAE)")
    loss = series(reading, "train_loss")
    same(loss.values, [16.5, np.nan, 16.25, 15.0, 15.5, 14.0])
    same(loss.at, [0, 1, 0, 1, 2, 3])
    same(loss.lines, [1, 2, 3, 5, 7, 7])
    assert (loss.clock, loss.window, loss.split) == ("epoch", "epoch", "train")
    same(series(reading, "test_loss").values, [12.5, np.inf, 12.25, 11.5, 11.75, 11.0])
    assert series(reading, "test_loss").split == "val"  # DETR's `test_` is its data_loader_val
    same(series(reading, "test_coco_eval_bbox[1]").values, [0.05, 0.06, 0.055, 0.07, 0.065, 0.08])
    assert facts(reading) == {"n_params": 41253894}
    told = texts(reading)
    assert "3 merge-conflict marks" in told
    assert "1 lines hold several rows" in told
    assert "the last line is cut" in told


def test_steps_counted_anew_in_every_epoch() -> None:
    reading = read("generic/in_epoch.jsonl", "JSON lines")
    same(series(reading, "loss").at, [1, 2, 3, 4, 5, 6])
    same(series(reading, "val_loss").at, [3, 6])
    assert facts(reading) == {"steps_per_epoch": 3}
    assert "counted anew in every epoch" in texts(reading)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"step": 1, "loss": 2.5}\n[1, 2]\n{"step": 2, "loss": 2.25}\n', "not objects"),
        ('{"step": 1, "loss": 2.5}\nEpoch 1 done\n{"step": 2, "loss": 2.25}\n', "1 lines are not JSON"),
        ('{"step": 1, "loss": 2.5}\n{"step": 3, "lo#\n{"step": 2, "loss": 2.25}\n', "1 damaged lines"),
        ('{"step": 1, "loss": 2.5}\n\n\n{"step": 2, "loss": 2.25}\n', ""),
        ('{"step": 1, "loss": 2.5}\r\n{"step": 2, "loss": 2.25}\r\n', ""),
        ('{"step": 1, "loss": "2.5"}\n{"step": 2, "loss": "2.25"}\n', ""),
        (f'{{"step": 1, "loss": 2.5, "x": {"[" * 500 + "]" * 500}}}\n{{"step": 2, "loss": 2.25}}\n', "nested too deep"),
        (f'{{"step": 1, "loss": 2.5, "x": {[1] * 100}}}\n{{"step": 2, "loss": 2.25}}\n', "over 64 values"),
    ],
)  # fmt: skip
def test_one_bad_line_costs_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text(text)
    (reading,) = readings_of(file)
    same(series(reading, "loss").values, [2.5, 2.25])
    assert said in texts(reading)


def test_a_line_over_the_limit_is_skipped_and_numbers_stay_right(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    with file.open("w") as out:
        out.write('{"step": 1, "loss": 2.5}\n{"step": 2, "blob": "')
        out.write("x" * (17 << 20))
        out.write('"}\n{"step": 3, "loss": 2.0}\n')
    (reading,) = readings_of(file)
    same(series(reading, "loss").lines, [1, 3])
    assert "a line of 18 MB was skipped" in texts(reading)


# ---------------------------------------------------------------- OpenMMLab, Detectron2, StyleGAN


def test_mmcv_turns_iter_into_steps_of_the_run() -> None:
    reading = read("mm/20260101_000000.log.json", "mmdetection .log.json")
    loss = series(reading, "loss")
    same(loss.values, [1.5, 1.25, np.nan, np.inf])
    same(loss.at, [50, 100, 170, 220])
    same(loss.lines, [2, 3, 5, 6])
    assert (loss.split, loss.window, loss.clock) == ("train", "window", "step")
    np.testing.assert_allclose(loss.clocks["epoch"], [50 / 120, 100 / 120, 170 / 120, 220 / 120])
    held = series(reading, "bbox_mAP")
    assert (held.at.tolist(), held.split, held.window) == ([120.0], "val", "eval")
    told = facts(reading)
    assert (told["steps_per_epoch"], told["seed"]) == (120, 7)
    assert told["environment"]["PyTorch"] == "1.10.0"  # type: ignore[index]
    (tree,) = reading.configs
    assert (tree.get("optimizer.lr"), tree.kind) == (0.02, "echoed in log")


def test_mmcv_validation_rows_that_count_the_validation_loader() -> None:
    reading = read("mm/newer_mmcv.log.json", "mmdetection .log.json")
    same(series(reading, "loss").at, [50, 100, 150, 200])
    same(series(reading, "mAP").at, [100, 200])  # not 5000: that is the length of the validation loader
    assert facts(reading)["steps_per_epoch"] == 100
    assert "100 to 149" in texts(reading)  # and it says that this is a lower bound


def test_mmcv_iter_based_runner() -> None:
    reading = read("mm/iter_based.log.json", "mmdetection .log.json")
    same(series(reading, "loss").at, [50, 100, 150, 200])
    same(series(reading, "mIoU").at, [100, 200])
    assert "steps_per_epoch" not in facts(reading)


def test_mmengine_places_validation_by_epoch() -> None:
    reading = read("mm/scalars.json", "mmengine scalars.json")
    same(series(reading, "loss").at, [50, 100, 170, 220])
    same(series(reading, "loss_cls").values, [1.5, 1.25, 1.0, np.nan])
    same(series(reading, "coco/bbox_mAP").at, [120, 240])
    assert facts(reading) == {"steps_per_epoch": 120}
    assert series(reading, "data_time", "val").values.tolist() == [0.01, 0.01]


def test_detectron2() -> None:
    reading = read("mm/metrics.json", "detectron2 metrics.json")
    same(series(reading, "total_loss").values, [2.5, np.nan, 2.0])
    same(series(reading, "total_loss").at, [19, 39, 59])
    held = series(reading, "bbox/AP")
    assert (held.at.tolist(), held.split) == ([59.0], "val")


def test_stylegan_counts_images_and_an_empty_tick_is_not_nan() -> None:
    reading = read("stylegan/stats.jsonl", "StyleGAN stats.jsonl")
    loss = series(reading, "Loss/G/loss")
    same(loss.values, [3.5, np.nan])
    same(loss.at, [500, 4500])
    assert loss.clock == "sample"
    same(series(reading, "Loss/pl_penalty").values, [0.25])
    assert "without a sample" in texts(reading)
    assert "the last line is cut" in texts(reading)
    metric = read("stylegan/metric-fid50k_full.jsonl", "StyleGAN metric jsonl")
    same(series(metric, "fid50k_full").at, [0, 40000])
    assert [c.metric for c in metric.checkpoints] == [("fid50k_full", 250.5), ("fid50k_full", 50.25)]
    assert facts(metric) == {"n_gpus": 2}


def test_a_json_document_of_rows_or_of_lists(tmp_path: Path) -> None:
    rows = tmp_path / "history.json"
    rows.write_text('[{"epoch": 1, "loss": 2.5}, {"epoch": 2, "loss": NaN}]')
    (reading,) = readings_of(rows)
    assert (reading.format, reading.points[0].clock) == ("JSON table", "epoch")
    same(series(reading, "loss").values, [2.5, np.nan])
    lists = tmp_path / "lists.json"
    lists.write_text('{"name": "x", "loss": [2.5, 2.0], "val": {"acc": [0.5, 0.75]}, "lr": [0.1]}')
    (reading,) = readings_of(lists)
    assert {p.name: p.values.tolist() for p in reading.points} == {"loss": [2.5, 2.0], "val.acc": [0.5, 0.75]}


def test_null_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text('{"step": 1, "loss": 2.5, "acc": null}\n{"step": 2, "loss": null, "acc": 0.5}\n')
    (reading,) = readings_of(file)
    assert {p.name: (p.at.tolist(), p.values.tolist()) for p in reading.points} == {
        "loss": ([1], [2.5]),
        "acc": ([2], [0.5]),
    }
