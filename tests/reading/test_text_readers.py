"""Every text format on a small record of our own, with its quirks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.reading.text_logs import RECORDS, at, facts, reading, series

from wheeltapper.reading import head_of, ranked


@pytest.mark.parametrize(
    ("record", "reader"),
    [
        ("basicsr/trainner.log", "basicsr"), ("basicsr/trainner_dec.log", "basicsr"),
        ("basicsr/basicsr.log", "basicsr"), ("basicsr/neosr.log", "basicsr"), ("nanogpt/output.log", "nanogpt"), ("nanogpt/llmc_main.log", "nanogpt"),
        ("nanogpt/llmc_stdout.txt", "nanogpt"), ("nanogpt/modded.txt", "nanogpt"), ("megatron/train.out", "megatron"),
        ("megatron/srun.out", "megatron"), ("fairseq/json.log", "fairseq"), ("fairseq/simple.log", "fairseq"),
        ("mlperf/result.txt", "mlperf"), ("cyclegan/loss_log.txt", "cyclegan"),
        ("stylegan_ticks/log.txt", "stylegan_ticks"),
        ("sedd/logs", "sedd"), ("sedd/console.log", "sedd"), ("nnunet/training_log.txt", "nnunet"),
        ("paddle/ppdet.log", "paddle"), ("paddle/ppgan.log", "paddle"), ("darknet/train.log", "darknet"),
        ("gluoncv/cls.log", "gluoncv"), ("gluoncv/seg.log", "gluoncv"), ("meters/pytorch.log", "meters"),
        ("meters/swav.log", "meters"), ("meters/detr.log", "meters"),
        ("epoch_summary/epoch_progress.log", "epoch_summary"),
        ("epoch_summary/train.log", "epoch_summary"), ("epoch_summary/keras.txt", "epoch_summary"),
        ("epoch_summary/plain.txt", "epoch_summary"), ("epoch_summary/steps.txt", "epoch_summary"),
        ("edm_prior/poisson_diffusion.log", "edm_prior"), ("yolo_console/train.log", "yolo_console"),
        ("yolo_console/v8.log", "yolo_console"), ("tqdm/nohup.log", "tqdm"), ("tqdm/postfix.log", "tqdm"),
        ("generic_text/own.log", "generic_text"), ("detectron/log.txt", "detectron_log"),
    ],
)  # fmt: skip
def test_the_right_reader_is_surest(record: str, reader: str) -> None:
    claims = [(sure, module.__name__.rpartition(".")[2]) for sure, module in ranked(head_of(RECORDS / record))]
    assert claims[0][1] == reader, claims
    assert len(claims) == 1 or claims[0][0] > claims[1][0]


def test_trainner_redux() -> None:
    read = reading("basicsr/trainner.log")
    assert read.format == "traiNNer-redux log"
    loss = series(read, "l_g_l1")
    assert loss.at.tolist() == [500, 1000, 1500, 2000]
    assert loss.values[:2].tolist() == [2.0482e-02, 1.9482e-02]
    assert math.isnan(loss.values[2])
    assert series(read, "grad_norm_g").values[2] == math.inf
    assert loss.window == "window"
    assert loss.lines.tolist() == [36, 37, 46, 47]
    assert loss.clocks["epoch"].tolist() == [0, 4, 6, 8]
    assert np.diff(loss.clocks["second"]).tolist() == [60, 60, 60]
    assert series(read, "scale_g").values[-1] == 32768
    assert series(read, "peak VRAM").unit == "GB"
    own = series(read, "psnr", about="Own_Val")
    assert (own.split, own.window) == ("val", "eval")
    assert (own.at.tolist(), own.values.tolist()) == ([1000, 2000], [30.053, 29.75])
    assert series(read, "psnr", about="Other_Val").values.tolist() == [28.5]
    known = facts(read)
    assert known["steps_per_epoch"] == 250
    assert known["total_steps"] == 4000
    assert known["world_size"] == 1
    assert known["amp"] == "fp16"
    assert (known["best_psnr"], known["best_psnr_step"]) == (30.053, 1000)


def test_trainner_redux_words_and_config() -> None:
    read = reading("basicsr/trainner.log")
    crash = [e for e in read.events if e.kind == "crash"]
    assert len(crash) == 1
    assert "NaN/Inf found in loss" in crash[0].text
    assert "sr_model.py:642" in crash[0].text
    assert (crash[0].line, crash[0].at, crash[0].clock) == (57, 2000, "step")
    assert [(c.step, c.exists) for c in read.checkpoints] == [(1000, False)]
    (config,) = read.configs
    assert config.get("train.optim_g.lr") == "1e-4"  # what YAML 1.1 makes of it
    leaf = config.leaf("datasets.train.batch_size_per_gpu")
    assert leaf is not None
    assert (leaf.value, leaf.line) == (8, 17)


def test_trainner_redux_december_shape() -> None:
    read = reading("basicsr/trainner_dec.log")
    assert series(read, "l_g_mssim").values.tolist() == [6.8884e-03, 6.8884e-03]
    assert series(read, "perf").values.tolist() == [1.504, 1.604]
    assert series(read, "perf").unit == "it/s"
    assert not [p for p in read.points if p.name in ("eta", "patch", "scale", "net")]
    assert [e.kind for e in read.events] == ["resume"]


def test_basicsr_and_neosr() -> None:
    read = reading("basicsr/basicsr.log")
    assert read.format == "BasicSR log"
    assert (series(read, "l_pix").window, series(read, "lr[1]").values.tolist()) == ("batch", [1e-4, 1e-4])
    assert (series(read, "time").values[0], series(read, "data").values[0]) == (0.3, 0.002)
    assert read.configs[0].get("datasets.train.batch_size_per_gpu") == 16
    assert series(read, "psnr", about="Set5").at.tolist() == [200]
    neosr = reading("basicsr/neosr.log")
    assert neosr.format == "neosr log"
    assert series(neosr, "l_g_total").at.tolist() == [100, 1200]
    assert series(neosr, "lr").values.tolist() == [8e-4, 8e-4]


def test_nanogpt() -> None:
    read = reading("nanogpt/output.log")
    val = series(read, "val loss")
    assert (val.split, val.unit, val.window, val.at.tolist()) == ("val", "nats", "eval", [0, 20])
    loss = series(read, "loss")
    assert loss.at.tolist() == [0, 10, 20, 10]  # the restart stays visible
    assert math.isnan(loss.values[1])
    assert series(read, "time").unit == "ms"
    assert facts(read)["n_params"] == 10_650_000
    overflow = next(e for e in read.events if e.kind == "overflow")
    assert (overflow.count, overflow.line) == (2, 6)
    assert next(e for e in read.events if e.kind == "resume").line == 11
    assert [c.step for c in read.checkpoints] == [20]


def test_llmc_and_modded() -> None:
    main = reading("nanogpt/llmc_main.log")
    assert series(main, "tel").split == "val"
    assert math.isnan(series(main, "trl").values[2])
    out = reading("nanogpt/llmc_stdout.txt")
    assert series(out, "norm").values.tolist() == [15.1234, 15.0]
    assert series(out, "lr").values.tolist() == [8.57e-07, 1.71e-06]
    assert series(out, "val loss").at.tolist() == [0, 2]
    assert facts(out)["total_steps"] == 9536
    modded = reading("nanogpt/modded.txt")
    assert series(modded, "val_loss").at.tolist() == [0, 125]
    assert math.isnan(series(modded, "step_avg").values[0])
    assert not modded.events  # the script printed above the log is not an event


def test_megatron() -> None:
    read = reading("megatron/train.out")
    loss = series(read, "lm loss")
    assert loss.at.tolist() == [20, 30]  # skipped iterations print no loss ...
    scale = series(read, "loss scale")
    assert scale.values.tolist() == [8388608, 32768, 32768]  # ... and everything else
    assert scale.clocks["sample"].tolist() == [40, 80, 120]
    assert scale.clocks["token"].tolist() == [81920, 163840, 245760]
    assert series(read, "grad norm").values.tolist() == [67.033, 0.0]  # "not measured" is kept as printed
    assert series(read, "number of skipped iterations").values.tolist() == [10, 8, 0]
    val = series(read, "lm loss value")
    assert (val.split, val.at.tolist()) == ("val", [30])
    assert series(read, "skipped").values.tolist() == [8]
    assert series(read, "lr").values.tolist() == [3.75e-05]
    assert read.configs[0].get("lr") == 0.00015
    assert {e.kind for e in read.events} == {"overflow", "crash"}
    assert [(c.path, c.step) for c in read.checkpoints] == [("checkpoints/gpt2", 30)]
    assert facts(read)["world_size"] == 8


def test_ranks_are_kept_apart() -> None:
    read = reading("megatron/srun.out")
    assert series(read, "lm-loss", rank=2).values.tolist() == [13, 12]
    assert series(read, "lm-loss", rank=3).values.tolist() == [12, 11]


def test_fairseq() -> None:
    read = reading("fairseq/json.log")
    loss = series(read, "loss")
    assert (loss.at.tolist(), loss.split, loss.window) == ([100, 200], "train", "window")
    assert math.isnan(loss.values[1])
    assert series(read, "gnorm").values[1] == math.inf
    assert series(read, "valid_loss").split == "val"
    assert series(read, "train_loss").window == "epoch"
    assert [(c.path, c.epoch) for c in read.checkpoints] == [("checkpoints/checkpoint1.pt", 1)]
    assert next(e for e in read.events if e.kind == "overflow").at == 100
    assert read.configs[0].get("max_update") == 1000
    simple = reading("fairseq/simple.log")
    assert series(simple, "loss", split="val").values.tolist() == [8.1]
    assert series(simple, "loss", window="window").at.tolist() == [100, 200]
    assert facts(simple)["steps_per_epoch"] == 1200


def test_mlperf() -> None:
    read = reading("mlperf/result.txt")
    accuracy = series(read, "eval_accuracy")
    assert (accuracy.clock, accuracy.at.tolist(), accuracy.values.tolist()) == ("epoch", [1, 2], [20.12, 24.1])
    assert accuracy.clocks["step"].tolist() == [20, 40]  # MLPerf counts epochs from 1, the meters from 0
    assert series(read, "Loss/tok").at.tolist() == [0, 10, 20, 30]
    assert series(read, "Loss/tok (avg)").values[-1] == 4.212
    assert [e.kind for e in read.events] == ["start", "overflow", "end"]
    assert read.configs[0].get("global_batch_size") == 2048


def test_cyclegan_counts_samples() -> None:
    read = reading("cyclegan/loss_log.txt")
    d_a = series(read, "D_A")
    assert (d_a.clock, d_a.at.tolist()) == ("sample", [100, 200, 300, 400, 500, 600, 700])
    assert facts(read)["samples_per_epoch"] == 250
    assert math.isnan(at(series(read, "G_A"), 400))


def test_stylegan_ticks() -> None:
    read = reading("stylegan_ticks/log.txt")
    assert series(read, "augment").at.tolist() == [100, 4100, 8100]
    assert (series(read, "fid50k_full").clock, at(series(read, "fid50k_full"), 4000)) == ("sample", 302.25)


def test_sedd() -> None:
    read = reading("sedd/logs")
    assert series(read, "training_loss").values.tolist() == [1234.5, 1134.5, math.inf]
    assert series(read, "evaluation_loss").split == "val"
    console = reading("sedd/console.log")
    assert series(console, "loss").at.tolist() == [1, 2]
    assert facts(console)["total_steps"] == 500000
    assert series(console, "Average loss").clock == "epoch"


def test_nnunet() -> None:
    read = reading("nnunet/training_log.txt")
    assert series(read, "train_loss").at.tolist() == [0, 1]
    assert series(read, "Pseudo dice", about="0").values.tolist() == [0.1, 0.3]
    assert math.isnan(series(read, "Pseudo dice", about="1").values[0])


def test_paddle() -> None:
    read = reading("paddle/ppdet.log")
    assert series(read, "loss").at.tolist() == [0, 20, 100]
    assert facts(read)["steps_per_epoch"] == 100
    gan = reading("paddle/ppgan.log")
    assert series(gan, "D_A_loss").at.tolist() == [0, 100]  # epochs from 1
    assert series(gan, "ips").unit == "images/s"


def test_darknet() -> None:
    read = reading("darknet/train.log")
    assert series(read, "loss").values[:2].tolist() == [872.1, 870.5]
    assert math.isnan(series(read, "avg loss").values[2])
    assert series(read, "loss").clocks["sample"].tolist() == [64, 128, 192]
    assert series(read, "mean average precision (mAP@0.50)").split == "val"


def test_gluoncv() -> None:
    read = reading("gluoncv/seg.log")
    loss = series(read, "training loss")
    assert (loss.window, loss.at.tolist()) == ("running", [20, 180, 207])  # 187 and 188 in turn: one length
    assert series(read, "mIoU").at.tolist() == [0, 1]
    assert series(read, "mIoU").clocks["step"].tolist() == [187, 374]
    cls = reading("gluoncv/cls.log")
    assert series(cls, "err-top1").values.tolist() == [0.948103, 0.848103]
    assert series(cls, "accuracy", window="running").clock == "epoch"  # the length of an epoch is not printed
    assert any("not printed" in n.text for n in cls.notes)
    assert cls.configs[0].get("lr") == 0.4


def test_meters() -> None:
    read = reading("meters/pytorch.log")
    loss = series(read, "Loss")
    assert (loss.window, loss.at.tolist()) == ("batch", [0, 50, 100, 150, 100])
    assert series(read, "Loss (avg)", split="train").values[1] == 5.1
    assert series(read, "Loss (avg)", split="val").values.tolist() == [4.5, 2.5]  # the last state of each evaluation
    assert series(read, "Acc@5").at.tolist() == [100, 200]  # an evaluation between epochs stands at the epoch's end
    assert [e.kind for e in read.events] == ["resume", "crash"]
    swav = reading("meters/swav.log")
    assert series(swav, "Loss").at.tolist() == [0, 0.5, 1, 1.5, 0]
    assert swav.configs[0].get("wd") == 1e-06
    detr = reading("meters/detr.log")
    assert series(detr, "loss_ce (avg)").values.tolist() == [4.6, 4.55]
    assert series(detr, "max mem").values.tolist() == [2920, 3020]


def test_epoch_summary_line() -> None:
    read = reading("epoch_summary/epoch_progress.log")
    assert at(series(read, "Train"), 10) == 41.43
    assert series(read, "Train").unit == "%"
    assert at(series(read, "loss", split="train"), 10) == 3.9695
    assert at(series(read, "loss", split="val"), 10) == 3.2703
    assert at(series(read, "LR"), 10) == 0.791248
    assert facts(read)["total_epochs"] == 80


def test_epoch_blocks() -> None:
    read = reading("epoch_summary/train.log")
    assert series(read, "Val Acc").at.tolist() == [1, 2]
    assert series(read, "Val Acc").clocks["step"].tolist() == [625, 1250]
    assert read.configs[0].get("world_size") == 8
    stage = next(e for e in read.events if e.kind == "stage")
    assert (stage.at, stage.clock) == (31, "epoch")
    assert any("lr_scheduler.step()" in e.text for e in read.events if e.kind == "warning")
    assert read.checkpoints[0].metric == ("accuracy", 4.1)
    assert not [e for e in read.events if e.kind == "resume"]  # 'resume': None in the configuration


def test_keras_keeps_the_last_state() -> None:
    read = reading("epoch_summary/keras.txt")
    assert series(read, "loss").values.tolist() == [1.501, 1.101]
    assert series(read, "val_accuracy").values.tolist() == [0.55, 0.1]
    assert facts(read)["steps_per_epoch"] == 1563


def test_plain_epoch_lines() -> None:
    read = reading("epoch_summary/plain.txt")
    assert series(read, "train loss").values[:2].tolist() == [0.9, 0.7]
    assert series(read, "val loss").split == "val"
    steps = reading("epoch_summary/steps.txt")
    assert series(steps, "Loss").at.tolist() == [100, 600, 700]


def test_step_sentences() -> None:
    read = reading("edm_prior/poisson_diffusion.log")
    assert series(read, "Loss").at.tolist() == [24900, 25000, 25100]
    assert at(series(read, "Validation Loss"), 25000) == 0.071234
    assert [(c.path, c.step) for c in read.checkpoints] == [("results/prior/checkpoint_step_0025000.pth", 25000)]
    assert facts(read)["batch_size"] == 64


def test_yolo() -> None:
    read = reading("yolo_console/train.log")
    assert series(read, "box").values.tolist() == [0.0108, 0.0098]
    assert series(read, "mAP@.5:.95").values.tolist() == [0.909, 0.937]
    assert series(read, "mAP@.5:.95").at.tolist() == [0, 1]
    crash = next(e for e in read.events if e.kind == "crash")
    assert "AttributeError" in crash.text
    assert "test.py:242" in crash.text
    v8 = reading("yolo_console/v8.log")
    assert series(v8, "mAP50-95").values.tolist() == [0.446]
    assert series(v8, "P").values.tolist() == [0.64]


def test_bars_without_values_cannot_be_judged() -> None:
    read = reading("tqdm/nohup.log")
    assert not read.points
    assert facts(read)["progress"] == "Epoch 2/3: 64% 115/180"
    assert any("nothing can be judged" in n.text for n in read.notes)


def test_bars_with_values() -> None:
    loss = series(reading("tqdm/postfix.log"), "loss")
    assert loss.at.tolist() == list(range(1, 13))  # three bars of four are twelve steps
    assert loss.lines.tolist() == [1] * 12


def test_learnt_shape() -> None:
    read = reading("generic_text/own.log")
    loss = series(read, "total loss")
    assert (loss.clock, loss.at.tolist()) == ("step", list(range(0, 120, 10)))
    assert series(read, "acc").unit == "%"
    assert series(read, "held-out score").at.tolist() == [30, 70, 110, 110, 110]
    assert facts(read)["total_steps"] == 120


def test_detectron() -> None:
    """Names of an evaluation's scores stand on a line of their own; two tasks and two data sets are kept apart."""
    read = reading("detectron/log.txt")
    assert {p.name for p in read.points} & {"kernel_size", "stride", "padding"} == set()
    loss = series(read, "total_loss")
    assert (loss.clock, loss.split, loss.at[:2].tolist(), len(loss.values)) == ("step", "train", [19, 39], 99 + 1)
    boxes = series(read, "bbox/AP")
    assert (boxes.split, boxes.unit, boxes.values.tolist()) == ("val", "%", [10.5, 21.0, 31.5, 42.0])
    assert boxes.at.tolist() == [499, 999, 1499, 1999]
    assert series(read, "segm/AP50").values.tolist() == [19.25, 38.5, 57.75, 77.0]
    assert series(read, "other_val/bbox/AP").values.tolist() == [3.0, 6.0, 9.0, 12.0]
    assert all(value != value for value in series(read, "bbox/APs").values)  # no small objects: kept as NaN
