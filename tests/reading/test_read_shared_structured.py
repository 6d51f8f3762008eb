"""The labelled records of structured formats: right format, and the numbers their MANIFEST row tells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wheeltapper.reading import readings_of
from wheeltapper.reading.record import Points, Reading

DETR = "JSON-lines log.txt (DETR/DeiT/MAE)"
HF = "HF trainer_state.json"
PL = "Lightning metrics.csv"
TIMM = "timm summary.csv"
YOLO = "ultralytics results.csv"
MMDET = "mmdetection .log.json"

# folder, file, format, series, (position, value)...: from the evidence column, to the digits it gives.
TOLD: list[tuple[str, str, str, str, list[tuple[float, float]]]] = [
    ("hf-mt5-az-summ-healthy", "trainer_state.json", HF, "loss", [(10, 25.5), (7000, 2.24)]),
    ("hf-mt5-az-summ-healthy", "trainer_state.json", HF, "eval_loss", [(100, 3.398), (7000, 2.065)]),
    ("hf-law-llm-loss-scaled", "trainer_state.json", HF, "loss", [(100, 284.9), (600, 5.024)]),
    ("hf-law-llm-loss-scaled", "trainer_state.json", HF, "eval_loss", [(100, 15.44), (600, 0.3038)]),
    ("hf-eagle-star-healthy", "trainer_state.json", HF, "loss", [(20, 24.79), (40000, 3.756)]),
    (
        "hf-llm-book-24k-rows", "trainer_state.json", HF, "loss",
        [(1, 3.714), (4800, 0.073), (9600, 0.099), (14400, 0.077), (19200, 0.078), (24000, 0.100)],
    ),
    ("hf-roberta-lora-agnews-healthy", "trainer_state.json", HF, "loss", [(100, 1.289), (1200, 0.236)]),
    ("hf-roberta-lora-agnews-healthy", "trainer_state.json", HF, "eval_loss", [(100, 0.7436), (900, 0.2896), (1200, 0.290)]),
    ("yolo8-ants-healthy", "results.csv", YOLO, "metrics/mAP50-95(B)", [(1, 0.0014), (100, 0.798)]),
    ("yolo8-ants-healthy", "results.csv", YOLO, "val/box_loss", [(1, 2.48), (100, 0.757)]),
    ("yolo8-ants-healthy", "results.csv", YOLO, "val/cls_loss", [(1, 4.29), (100, 0.661)]),
    ("yolo-anemia-no-boxes", "results.csv", YOLO, "train/cls_loss", [(1, 113), (50, 0.034)]),
    ("yolo-anemia-no-boxes", "results.csv", YOLO, "metrics/mAP50(B)", [(1, 0.0055), (8, 0.041), (15, 0), (50, 0)]),
    ("yolo-anemia-no-boxes", "results.csv", YOLO, "val/cls_loss", [(8, 3.44), (50, 6.21)]),
    ("yolo10-healthy", "results.csv", YOLO, "metrics/mAP50-95(B)", [(1, 0.074), (15, 0.732)]),
    ("yolo5-ocr-ansi-crash-at-end", "results.txt", "YOLOv5 results.txt", "train/box_loss", [(0, 0.0114), (98, 0.0087)]),
    ("yolo5-ocr-ansi-crash-at-end", "results.txt", "YOLOv5 results.txt", "metrics/mAP_0.5:0.95", [(98, 0.94)]),
    ("pl-pinn-pendulum-plateau", "metrics.csv", PL, "initial_omega_loss_epoch", [(31, 0.064), (31999, 0.150)]),
    ("pl-pinn-pendulum-plateau", "metrics.csv", PL, "dynamics_loss_epoch", [(31, 0.458), (31999, 0.0064)]),
    ("pl-mlaos-v1-healthy", "metrics.csv", PL, "train_loss", [(49, 0.0502), (15099, 4.8e-6)]),
    ("pl-mlaos-v1-healthy", "metrics.csv", PL, "val_loss", [(150, 8.7e-4), (15099, 1.8e-6)]),
    ("pl-mlaos-v2-val-spike", "metrics.csv", PL, "val_loss", [(108, 2.2e-3), (10899, 8.0e-6)]),
    ("pl-dogs-cats-healthy", "metrics.csv", PL, "val_loss", [(1718, 0.0711), (8595, 0.0142)]),
    ("pl-dogs-cats-healthy", "metrics.csv", PL, "val_accuracy", [(1718, 0.976), (8595, 0.996)]),
    ("timm-cub-lr7e-5-healthy", "summary.csv", TIMM, "eval_loss", [(0, 5.43), (73, 0.599), (104, 0.610)]),
    ("timm-cub-lr7e-5-healthy", "summary.csv", TIMM, "train_lr", [(0, 3.5e-08)]),
    ("timm-cub-lr4e-4-diverged", "summary.csv", TIMM, "eval_top1", [(9, 30.2), (10, 0.71), (15, 0.52)]),
    ("timm-cub-lr4e-4-diverged", "summary.csv", TIMM, "eval_loss", [(9, 3.119), (10, 5.288), (15, 5.301)]),
    ("timm-cub-lr5e-4-diverged", "summary.csv", TIMM, "eval_top1", [(11, 28.67), (12, 25.11), (13, 16.26), (14, 0.52)]),
    ("timm-cub-noconv-chance", "summary.csv", TIMM, "eval_top1", [(34, 0.97)]),
    ("timm-cub-46ep-then-resume", "summary.csv", TIMM, "train_lr", [(46, 1.44e-6)]),
    ("timm-cub-resume-lr-jump", "summary.csv", TIMM, "train_lr", [(47, 3.85e-5)]),
    ("timm-cub-resume-lr-jump", "summary.csv", TIMM, "eval_top1", [(47, 86.90), (58, 87.69)]),
    ("timm-cars-healthy", "summary.csv", TIMM, "eval_top1", [(0, 0.57), (9, 0.85), (109, 93.24)]),
    ("deit-small-healthy", "log.txt", DETR, "test_acc1", [(266, 0.6667), (299, 0.6615)]),
    ("mae-finetune-healthy", "log.txt", DETR, "test_acc1", [(0, 35.75), (99, 96.25)]),
    ("detr-sten2-val-loss-overfit", "log.txt", DETR, "test_loss", [(36, 13.19), (237, 21.2)]),
    ("detr-sten2-val-loss-overfit", "log.txt", DETR, "test_coco_eval_bbox[0]", [(0, 0.0003), (216, 0.074)]),
    ("detr-sten1-plateau", "log.txt", DETR, "test_loss", [(0, 12.53), (92, 7.638), (299, 8.05)]),
    ("mmdet-frcnn-voc-healthy", "20210112_010929.log.json", MMDET, "mAP", [(6207, 0.6826), (12 * 6207, 0.7778)]),
    ("mmdet-maskrcnn-coco-healthy", "20210507_121401.log.json", MMDET, "segm_mAP", [(7330, 0.214), (12 * 7330, 0.372)]),
    ("mmdet-lr0.1-nan", "20211207_135738.log.json", MMDET, "loss", [(5 * 3750 + 1000, 0.537), (5 * 3750 + 1050, np.nan)]),
    ("mmdet-lr0.1-nan", "20211207_135738.log.json", MMDET, "bbox_mAP", [(3750, 0.087), (4 * 3750, 0.127), (5 * 3750, 0.126)]),
    ("mmdet-lr0.01-healthy", "20211207_135727.log.json", MMDET, "bbox_mAP", [(3750, 0.121), (12 * 3750, 0.212)]),
    ("mmdet-fcos-nan-epoch10", "20201017_191416.log.json", MMDET, "loss", [(50, 3.08), (9 * 1875 + 500, 1.60), (9 * 1875 + 550, np.nan)]),
    ("mmdet-retinanet-nan-iter400", "20210218_222702.log.json", MMDET, "loss", [(50, 1.99), (400, np.nan)]),
    ("mmdet-freeanchor-diverged", "20210311_173115.log.json", MMDET, "loss", [(50, 3.98), (600, 3.3), (1200, 2751), (30000, 46.7)]),
    ("mmdet-fcos-eval-zero", "20201023_113943.log.json", MMDET, "mAP", [(4328, 0.0002), (12 * 4328, 0.0004)]),
    ("mmdet-fcos-imagenet-healthy", "20201022_105335.log.json", MMDET, "mAP", [(4328, 0.1155), (12 * 4328, 0.367)]),
    ("mmdet-frcnn-map-falls", "20201024_133659.log.json", MMDET, "mAP", [(6207, 0.404), (2 * 6207, 0.356), (24 * 6207, 0.217)]),
    ("stylegan-sprites-fid-broken", "metric-fid50k_full.jsonl", "StyleGAN metric jsonl", "fid50k_full", [(0, 1.2e57), (120_000, -3.1e68)]),
    ("stylegan-sprites-fid-broken", "stats.jsonl", "StyleGAN stats.jsonl", "Loss/G/loss", [(32, 3.48), (316_032, 1.60)]),
    ("diffusion-lr1e-4-healthy", "progress.csv", "OpenAI logger progress.csv", "loss_q1", [(0, 7.35), (10380, 0.0085)]),
    ("mlflow-lgbm-healthy", "l2.train", "MLflow mlruns file", "l2.train", [(0, 0.9966), (299, 0.9495)]),
    ("mlflow-lgbm-healthy", "l2.valid", "MLflow mlruns file", "l2.valid", [(0, 0.9970), (299, 0.9833)]),
    ("resnet50-onecycle-80ep", "epochs.csv", "CSV table", "val_acc", [(1, 4.10), (10, 40.47), (78, 75.13)]),
]  # fmt: skip


def one(folder: Path, name: str, format: str) -> Reading:
    (reading,) = readings_of(folder / name)
    assert reading.format == format
    return reading


def series(reading: Reading, name: str) -> Points:
    return next(p for p in reading.points if p.name == name)


@pytest.mark.parametrize(("folder", "file", "format", "name", "told"), TOLD, ids=[f"{t[0]}:{t[3]}" for t in TOLD])
def test_the_numbers_of_the_manifest(
    shared_runs: Path, folder: str, file: str, format: str, name: str, told: list[tuple[float, float]]
) -> None:
    points = series(one(shared_runs / folder, file, format), name)
    for at, value in told:
        nearest = int(np.argmin(np.abs(points.at - at)))
        assert abs(points.at[nearest] - at) < 0.1
        if np.isnan(value):
            assert np.isnan(points.values[nearest])
        else:
            # Evidence is rounded or cut to two or more digits.
            assert points.values[nearest] == pytest.approx(value, rel=0.06, abs=6e-5)


def means(points: Points, parts: int) -> list[float]:
    return [float(np.mean(part)) for part in np.array_split(points.values, parts)]


def test_eighths_and_tenths(shared_runs: Path) -> None:
    slow = one(shared_runs / "diffusion-lr1e-7-too-slow", "progress.csv", "OpenAI logger progress.csv")
    assert means(series(slow, "loss"), 8) == pytest.approx([15.9, 15.2, 14.6, 13.6, 12.8, 12.2, 11.5, 10.8], abs=0.06)
    pinn = one(shared_runs / "pl-pinn-pendulum-plateau", "metrics.csv", PL)
    wanted = [0.3405, 0.3204, 0.3184, 0.3168, 0.3155, 0.3147, 0.3144, 0.3144]
    assert means(series(pinn, "train_loss_epoch"), 8) == pytest.approx(wanted, abs=6e-5)
    ant = one(shared_runs / "sb3-monitor-a2c-ant-collapse", "0.monitor.csv", "SB3 monitor.csv")
    tenths = means(series(ant, "r"), 10)
    assert (tenths[0], tenths[-1]) == pytest.approx((-96.6, -111), abs=0.5)
    assert max(tenths) == pytest.approx(332, rel=0.03)  # where exactly the tenths are cut is not told
    walker = one(shared_runs / "sb3-monitor-a2c-bipedal-healthy", "0.monitor.csv", "SB3 monitor.csv")
    tenths = means(series(walker, "r"), 10)
    assert (tenths[0], tenths[-1]) == pytest.approx((6.4, 290.7), abs=0.06)


def test_counts_of_the_manifest(shared_runs: Path) -> None:
    many = one(shared_runs / "mae-underwater-many-runs", "log.txt", DETR)
    loss = series(many, "train_loss")
    assert int(np.sum(np.diff(loss.at) < 0)) + int(np.sum(np.diff(loss.at) == 0)) >= 3288
    assert float(np.median(loss.values)) == pytest.approx(1.095, abs=6e-4)
    best = series(many, "test_acc1")
    assert int(np.sum(best.values > 90)) == 58
    assert float(best.values.max()) == pytest.approx(97.95, abs=5e-3)
    assert int(best.lines[np.argmax(best.values)]) == 5029 + 1  # the evidence counts rows from 0
    nan = one(shared_runs / "mmdet-retinanet-nan-iter400", "20210218_222702.log.json", MMDET)
    values = series(nan, "loss").values
    assert (int(np.isnan(values).sum()), len(values)) == (7193, 7200)
    later = one(shared_runs / "mmdet-lr0.1-nan", "20211207_135738.log.json", MMDET)
    assert int(np.isnan(series(later, "loss").values).sum()) == 355
    fcos = one(shared_runs / "mmdet-fcos-nan-epoch10", "20201017_191416.log.json", MMDET)
    assert int(np.isnan(series(fcos, "loss").values).sum()) == 545
    spike = series(one(shared_runs / "pl-mlaos-v2-val-spike", "metrics.csv", PL), "val_loss")
    row = int(np.argmax(spike.values))
    assert (spike.values[row], spike.lines[row]) == (pytest.approx(4.07e-3, rel=2e-3), pytest.approx(256, abs=2))
    anemia = one(shared_runs / "yolo-anemia-no-boxes", "results.csv", YOLO)
    assert not series(anemia, "train/box_loss").values.any()
    assert not series(anemia, "train/dfl_loss").values.any()
    eagle = one(shared_runs / "hf-eagle-star-healthy", "trainer_state.json", HF)
    assert float(series(eagle, "grad_norm").values.max()) == pytest.approx(82, abs=0.6)
    assert any("remaining_time" in note.text and "59h:30m:19s" in note.text for note in eagle.notes)
    assert len(one(shared_runs / "yolo10-healthy", "results.csv", YOLO).points) == 19


def test_two_checkpoints_of_one_run_agree(shared_runs: Path) -> None:
    folder = shared_runs / "hf-roberta-lora-agnews-healthy"
    early = series(one(folder, "checkpoint-1000.trainer_state.json", HF), "loss")
    late = series(one(folder, "trainer_state.json", HF), "loss")
    np.testing.assert_array_equal(early.values, late.values[: len(early.values)])
    np.testing.assert_array_equal(early.at, late.at[: len(early.at)])


def test_wandb_summaries(shared_runs: Path) -> None:
    told = {f.name: f.value for f in one(shared_runs / "nanogpt-wandb-overfit", "wandb-summary.json", "W&B summary").facts}
    assert told["summary/val/loss"] == pytest.approx(4.9221, abs=6e-5)
    assert told["summary/iter"] == 5000
