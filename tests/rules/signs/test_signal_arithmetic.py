"""The study behind the signs of rate, rhythm and machine: their arithmetic on series whose truth is known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wheeltapper.finding import Finding
from wheeltapper.rules.signs.high_skip_rate import _chernoff
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run
from wheeltapper.study import Absent, Study
from wheeltapper.study.phases import phases_of
from wheeltapper.study.statistics import fall_from_best
from wheeltapper.testing import ask_sign, make_run

HF = (
    "max_steps: {n}\nlearning_rate: 0.001\nlr_scheduler_type: linear\nwarmup_steps: 0\n"
    "per_device_train_batch_size: 8\nlogging_steps: 1\n"
)


def test_phases_find_a_bump_and_its_place() -> None:
    rng = np.random.default_rng(1)
    at = np.arange(1000, dtype=np.float64)
    x = 3.0 - at / 500 + 0.05 * rng.standard_normal(1000) + 0.2 * ((at % 50) < 10)
    found = phases_of(at, x, 50.0, least=0.0, bins=5)
    assert found is not None
    assert found.p == pytest.approx(0.001)
    assert int(np.argmax(found.means)) == 0
    assert found.amplitude == pytest.approx(0.2, abs=0.04)


def test_phases_of_noise_are_chance_at_the_stated_rate() -> None:
    rng = np.random.default_rng(2)
    at = np.arange(400, dtype=np.float64)
    ps = []
    for _ in range(200):
        x = np.zeros(400)
        for i in range(1, 400):  # correlated noise and a curved trend: neither is a phase
            x[i] = 0.8 * x[i - 1] + rng.standard_normal()
        found = phases_of(at, x + 5 * np.exp(-at / 100), 20.0, least=0.0, bins=4, draws=199)
        assert found is not None
        ps.append(found.p)
    assert float(np.mean(np.array(ps) < 0.05)) < 0.12
    assert min(ps) > 0.0


def test_phases_need_whole_cycles() -> None:
    at = np.arange(100, dtype=np.float64)
    assert phases_of(at, at, 40.0, least=0.0) is None
    assert phases_of(at, at, 1e-3, least=0.0) is None, "a period below the spacing of the log"


def test_very_many_rates_keep_their_shape_and_their_jump() -> None:
    n = 300_000
    lr = 1e-3 * (1 - np.arange(n) / (2 * n))
    lr[200_001:] *= 1.9
    shape = Study(make_run({"lr": lr.tolist()})).get("lr_shape")
    assert [round(j.at) for j in shape.jumps] == [200_001]


def rate_of(factor: float, n: int = 400) -> Run:
    values = [1e-3 * max(0.0, 1 - factor * i / n) for i in range(n)]
    return make_run({"lr": values}, config=HF.format(n=n))


def test_the_plan_is_a_signal_and_a_missing_one_says_why() -> None:
    assert Study(rate_of(1.0)).get("lr_match").verdict == "matches"
    with pytest.raises(Absent, match="configuration"):
        Study(make_run({"lr": [1e-3] * 5})).get("lr_plan")


@pytest.mark.parametrize("factor", [4.0, 8.0])
def test_a_schedule_at_another_pace_is_named_with_its_pace(factor: float) -> None:
    (answer,) = ask_sign("lr-off-plan", rate_of(factor))
    assert isinstance(answer, Finding)
    assert answer.numbers["pace"] == factor


def test_a_default_rate_is_no_plan_to_be_off() -> None:
    config = HF.format(n=400).replace("learning_rate: 0.001\n", "")
    run = make_run({"lr": [2e-3 * (1 - i / 400) for i in range(400)]}, config=config)
    assert not isinstance(ask_sign("lr-off-plan", run)[0], Finding)


def test_chernoff_never_understates_the_binomial_tail() -> None:
    for n, q, k in ((1000, 0.002, 12), (200, 0.01, 9), (5000, 0.001, 20)):
        tail = sum(math.comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(k, k + 60))
        assert tail <= _chernoff(k, n, q) < 100 * tail


def test_pace_is_read_per_step_and_never_from_running_clocks() -> None:
    assert Study(make_run({"batch_time": [0.5] * 50, "train/loss": [1.0] * 50})).get("pace").raw == "batch_time"
    with pytest.raises(Absent):
        Study(make_run({"total_time": list(range(1, 51)), "eta": [9.0] * 50})).get("pace")


@pytest.mark.parametrize("name", ["val_loss_ema", "ema_val_loss", "val_ema_loss", "val/EMA/loss"])
def test_an_average_is_paired_with_its_raw_score(name: str) -> None:
    raw = [2.0 - 0.1 * i for i in range(12)]
    (answer,) = ask_sign("ema-raw-gap", make_run({"val_loss": raw, name: [2.2] * 12}))
    assert isinstance(answer, Finding)
    assert answer.severity == "watch"


def test_an_explosion_begins_where_it_begins_and_not_at_its_last_points() -> None:
    """On a linear axis all but the end of an exponential lies near its best."""
    noise = np.exp(0.3 * np.random.default_rng(4).standard_normal(60))
    calm = np.full(20, 2.0) * noise[:20]
    for before in (np.empty(0), calm):
        x = np.concatenate([before, 2.0 * np.exp(1.5 * np.arange(40)) * noise[20:]])
        fall = fall_from_best(x)
        assert fall is not None
        assert abs(fall.onset_index - len(before)) <= 4


def test_an_evaluation_is_told_by_its_mean_and_not_by_its_batches() -> None:
    epochs = {"val_loss_epoch": [3.0, 2.5, 2.0], "val_acc_epoch": [0.1, 0.2, 0.3]}
    batches = {"val_loss_step": [3.0, 4.0, 2.0] * 20, "val_acc_step": [0.0, 0.3, 0.1] * 20}
    study = Study(make_run({**epochs, **batches, "train_loss": [3.0, 2.0, 1.0]}))
    assert study.get("val_loss").values.tolist() == [3.0, 2.5, 2.0]
    assert [s.values.tolist() for s in study.get("val_metrics")] == [[0.1, 0.2, 0.3]]
    alone = Study(make_run({"val_loss_step": [3.0, 4.0, 2.0] * 20}))
    assert len(alone.get("val_loss")) == 60  # all there is
    with pytest.raises(Absent):  # a few batches of a first evaluation
        Study(make_run({"val_acc_step": [0.0] * 6})).get("val_metrics")


def test_a_loss_that_rises_where_mosaics_end_is_not_comparable() -> None:
    def run(last: float, at: int = 10) -> Run:
        wave = [0.01 * ((i * 7) % 5) for i in range(60)]
        parts = {
            f"train/{part}_loss": [2.0 - 0.02 * i + w + (last if i >= 60 - at else 0.0) for i, w in enumerate(wave)]
            for part in ("box", "cls", "dfl")
        }
        return replace(make_run(parts), formats=("ultralytics results.csv",))

    assert "mosaics" in Study(run(1.0)).get("shifting")
    assert not Study(run(1.0, at=25)).get("shifting")  # a jump anywhere else is a jump
    assert not Study(run(-0.6)).get("shifting")
    assert not Study(replace(run(1.0), formats=("CSV",))).get("shifting")
    assert not [f for f in ask_sign("diverged", run(1.0)) if isinstance(f, Finding) and f.severity == "ill"]


def test_a_recall_that_holds_its_level_does_not_make_a_run_sound() -> None:
    f1 = [0.63, 0.38, 0.61, 0.44, 0.6, 0.42, 0.55, 0.46, 0.5, 0.43]
    swings = {"val/f1": f1, "val/recall": [0.78, 0.77, 0.79, 0.78, 0.77, 0.78, 0.79, 0.78, 0.77, 0.78]}
    assert not Study(make_run(swings)).get("learned").seen
    assert Study(make_run({"val/accuracy": swings["val/recall"]})).get("learned").seen


def test_lists_in_files_of_their_own_are_no_parts_of_one_loss(tmp_path: Path) -> None:
    for name, level in (("loss_c1_log.txt", 1.9), ("loss_c2_log.txt", 0.9)):
        (tmp_path / name).write_text(str([round(level + 0.01 * i, 3) for i in range(30)]))
    (run,) = read_runs(tmp_path)
    with pytest.raises(Absent):
        Study(run).get("train_loss")
    rows = "\n".join(f"{2.0 - 0.01 * i},{1.0 - 0.01 * i}" for i in range(30))
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "log.csv").write_text(f"loss_box,loss_cls\n{rows}\n")
    (run,) = read_runs(tmp_path / "table")
    assert Study(run).get("train_loss").values[0] == 3.0
