"""The labelled real records: the numbers that MANIFEST.csv gives as evidence."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.reading.text_logs import at, facts, series

from wheeltapper.reading import readings_of
from wheeltapper.reading.record import Reading


def read_one(shared_runs: Path, pattern: str) -> Reading:
    (path,) = shared_runs.glob(pattern)
    (found,) = readings_of(path)
    return found


def test_cyclegan(shared_runs: Path) -> None:
    read = read_one(shared_runs, "cyclegan-samcw-D-wins/loss_log.txt")
    d_a = series(read, "D_A")
    assert len(d_a.values) == 6497
    assert (d_a.values == 0).sum() == 1823
    assert np.all(np.diff(d_a.at) > 0)
    assert d_a.clocks["epoch"].max() < 176


def test_icnet_nan_in_average(shared_runs: Path) -> None:
    read = read_one(shared_runs, "gluoncv-icnet-nan-in-average/*.log")
    loss = series(read, "training loss")
    epochs = np.floor(loss.clocks["epoch"])
    assert len(np.unique(epochs[np.isnan(loss.values)])) == 40
    first = np.flatnonzero(np.isnan(loss.values))[0]
    assert (epochs[first], round(loss.at[first] - epochs[first] * 187)) == (11, 120)
    assert np.all(np.diff(loss.at) > 0)
    miou = series(read, "mIoU")
    assert [at(miou, e) for e in (10, 12, 20, 36, 119)] == [0.350, 0.355, 0.375, 0.409, 0.430]


def test_resnet50_gluoncv(shared_runs: Path) -> None:
    read = read_one(shared_runs, "gluoncv-resnet50v1b-healthy/*.log")
    assert at(series(read, "err-top1"), 119) == pytest.approx(0.2234, abs=5e-5)
    assert at(series(read, "accuracy", window="epoch"), 119) == pytest.approx(0.806, abs=5e-4)


def test_llmc(shared_runs: Path) -> None:
    read = read_one(shared_runs, "llmc-adamw-baseline-healthy/*.log")
    assert at(series(read, "tel"), 9536) == pytest.approx(3.276, abs=5e-4)
    assert len(series(read, "trl").values) == 9536


def test_megatron(shared_runs: Path) -> None:
    off = read_one(shared_runs, "megatron-n16-dsoff-diverged/*.out")
    loss = series(off, "lm loss")
    assert [round(at(loss, s), 2) for s in (1, 31, 62)] == [12.44, 11.65, 20.44]
    assert loss.values.max() == pytest.approx(48.1, abs=0.05)
    assert set(series(off, "loss scale").values) == {12.0}
    assert any(c.get("adam_beta2") == 0.999 for c in off.configs)
    on = read_one(shared_runs, "megatron-n16-dson-healthy/*.out")
    assert at(series(on, "lm-loss"), 49) == pytest.approx(7.747, abs=5e-4)
    assert set(series(on, "grad norm").values) == {0.0}
    base = read_one(shared_runs, "megatron-gpt2-n8-healthy/*.out")
    assert 10 not in series(base, "lm loss").at
    assert at(series(base, "loss scale"), 10) == 8388608
    assert at(series(base, "number of skipped iterations"), 10) == 10
    assert [round(at(series(base, "lm loss"), s), 3) for s in (100, 200)] == [8.085, 7.534]
    assert any(e.kind == "crash" and "CANCELLED" in e.text for e in base.events)


def test_postmortems(shared_runs: Path) -> None:
    tr1 = read_one(shared_runs, "postmortem-bloom-tr1-13B/*.log")
    assert round(at(series(tr1, "lm loss"), 29050), 3) == 7.344
    tr11 = read_one(shared_runs, "postmortem-bloom-tr11-176B/*.log")
    assert round(at(series(tr11, "lm loss"), 31219), 3) == 5.098
    assert "token" in series(tr11, "lm loss").clocks
    tr8 = read_one(shared_runs, "postmortem-bloom-tr8-104B/excerpt_glitch_8738.log")
    assert 9027 not in series(tr8, "lm loss").at
    assert 9027 in series(tr8, "loss scale").at
    tr8b = read_one(shared_runs, "postmortem-bloom-tr8b-104B/*.log")
    assert series(tr8b, "loss scale").values[-1] == 32768


def test_nanogpt(shared_runs: Path) -> None:
    read = read_one(shared_runs, "nanogpt-wandb-overfit/output.log")
    val = series(read, "val loss")
    assert [at(val, s) for s in (0, 1250, 5000)] == [6.0586, 2.1456, 4.9221]
    assert val.unit == "BPC"
    assert [c.step for c in read.checkpoints] == [250, 500, 750, 1000, 1250]
    healthy = read_one(shared_runs, "nanogpt-wandb-healthy/output.log")
    assert at(series(healthy, "val loss"), 5000) == 1.5617


def test_traiNNer(shared_runs: Path) -> None:
    read = read_one(shared_runs, "paragonsr2-realtime/*.log")
    psnr = series(read, "psnr")
    assert [round(at(psnr, s), 2) for s in (1000, 2000, 3000)] == [33.81, 34.12, 34.18]
    assert psnr.at.tolist() == list(range(1000, 61000, 1000))
    assert set(series(read, "scale_g").values) == {1.0}
    yaml = next(c for c in read.configs if c.format == "yaml")
    assert yaml.get("train.total_iter") == 200000
    leaf = yaml.leaf("name")
    assert leaf is not None
    assert leaf.line == 22
    assert facts(read)["steps_per_epoch"] == 1791
    assert [e.kind for e in read.events][-1] == "end"


def test_swav_restarts_stay_visible(shared_runs: Path) -> None:
    read = read_one(shared_runs, "swav-cifar10-healthy/train.log")
    loss = series(read, "Loss (avg)")
    falls = np.flatnonzero(np.diff(loss.at) < -1)
    assert [int(loss.at[i]) for i in falls] == [61, 108]
    assert round(float(loss.values[-1]), 2) == 2.12
    assert series(read, "Lr").values.max() == pytest.approx(0.6, abs=1e-3)


def test_mlperf(shared_runs: Path) -> None:
    read = read_one(shared_runs, "mlperf-gnmt-healthy/result_0.txt")
    assert series(read, "eval_accuracy").values.tolist() == [20.12, 21.89, 23.04, 24.10]
    assert series(read, "Loss/tok (avg)").values[-1] == pytest.approx(3.145, abs=5e-4)


def test_stylegan(shared_runs: Path) -> None:
    read = read_one(shared_runs, "stylegan-sprites-fid-broken/log.txt")
    fid = series(read, "fid50k_full")
    assert (fid.values < 0).sum() == 3
    assert series(read, "tick").values[-1] == 80


def test_yolo5(shared_runs: Path) -> None:
    read = read_one(shared_runs, "yolo5-ocr-ansi-crash-at-end/train.log")
    box = series(read, "box")
    assert len(box.values) == 100
    assert round(float(box.values[0]), 4) == 0.0114
    assert set(series(read, "cls").values) == {0.0}
    crash = next(e for e in read.events if e.kind == "crash")
    assert "has no attribute 'run'" in crash.text
    assert "test.py:242" in crash.text


def test_nohup_bars(shared_runs: Path) -> None:
    read = read_one(shared_runs, "tqdm-cr-nohup/train.log")
    assert facts(read)["progress"] == "Epoch 12/200: 64% 115/180"
    assert any("progress-bar states" in n.text for n in read.notes)
    assert read.configs[0].get("gan_mode") == "lsgan"


def test_nothing_is_lost_silently(shared_runs: Path) -> None:
    """Every text record: positions and values of equal length, lines in order, no empty reading."""
    for path in sorted(shared_runs.glob("*/*")):
        if path.suffix not in (".log", ".out", ".txt"):
            continue
        for found in readings_of(path):
            assert found.points, path
            for points in found.points:
                assert np.all(np.diff(points.lines) >= 0), (path, points.name)
                assert not math.isnan(float(points.at[0]))
