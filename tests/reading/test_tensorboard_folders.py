"""One run in several folders: the writers that TensorBoard keeps apart."""

from __future__ import annotations

from pathlib import Path

import tb_writer as tb

from wheeltapper.run.gather import read_runs


def write(folder: Path, tag: str, values: list[float]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    events = [tb.event(100.0 + i, i, tb.scalar(tag, value)) for i, value in enumerate(values)]
    (folder / "events.out.tfevents.1700000000.host").write_bytes(tb.version(99.0) + b"".join(events))


def test_keras_writes_training_and_validation_into_two_folders(tmp_path: Path) -> None:
    for model, top in (("a", 2.0), ("b", 3.0)):
        write(tmp_path / model / "train", "epoch_loss", [top, 1.0, 0.5])
        write(tmp_path / model / "validation", "epoch_loss", [top + 0.5, 1.5, 1.25])
    runs = read_runs(tmp_path)
    assert [run.name for run in runs] == ["a", "b"]
    assert runs[1].series["train/loss"].values.tolist() == [3.0, 1.0, 0.5]
    assert runs[1].series["val/loss"].values.tolist() == [3.5, 1.5, 1.25]


def test_the_evaluation_of_an_estimator_belongs_to_the_run_above(tmp_path: Path) -> None:
    write(tmp_path / "model", "loss", [2.0, 1.0, 0.5])
    write(tmp_path / "model" / "eval", "loss", [2.5, 1.5, 1.25])
    (run,) = read_runs(tmp_path)
    assert run.series["train/loss"].values.tolist() == [2.0, 1.0, 0.5]
    assert run.series["val/loss"].values.tolist() == [2.5, 1.5, 1.25]


def test_a_run_that_is_called_train_stays_a_run(tmp_path: Path) -> None:
    write(tmp_path / "train", "loss", [2.0, 1.0, 0.5])
    write(tmp_path / "train2", "loss", [3.0, 1.0, 0.5])
    assert [run.name for run in read_runs(tmp_path)] == ["train", "train2"]


def test_add_scalars_keeps_a_folder_for_each_curve(tmp_path: Path) -> None:
    write(tmp_path / "exp", "lr", [0.1, 0.1, 0.1])
    write(tmp_path / "exp" / "Loss_epoch_train", "Loss/epoch", [2.0, 1.0, 0.5])
    write(tmp_path / "exp" / "Loss_epoch_val", "Loss/epoch", [2.5, 1.5, 1.25])
    write(tmp_path / "exp" / "other", "loss", [9.0, 8.0, 7.0])
    runs = {run.name: run for run in read_runs(tmp_path)}
    assert sorted(runs) == ["exp", "other"]
    assert runs["exp"].series["train/loss"].values.tolist() == [2.0, 1.0, 0.5]
    assert runs["exp"].series["val/loss"].values.tolist() == [2.5, 1.5, 1.25]
