"""Curves that were saved without a log: pickled histories, numpy arrays, lists and tables without names."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from wheeltapper.errors import NothingToRead
from wheeltapper.reading import readings_of
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run

RECORDS = Path(__file__).resolve().parents[1] / "records"


def one(path: Path) -> Run:
    (run,) = read_runs(path)
    return run


def test_a_pickled_history_is_read_as_data() -> None:
    run = one(RECORDS / "keras" / "trainHistoryDict")
    assert run.formats == ("pickled history",)
    assert run.series["train/loss"].values.tolist() == [2.0, 1.5, 1.25]
    assert run.series["val/loss"].values.tolist() == [2.5, 2.0, 1.75]
    assert run.series["lr"].values.tolist() == [0.1, 0.1, 0.01]


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return Path.touch, (Path("touched"),)  # type: ignore[return-value]


def test_nothing_in_a_pickled_history_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "history").write_bytes(pickle.dumps({"loss": [1.0, 0.5, 0.2], "x": Evil()}))
    assert len(one(tmp_path / "history").series["train/loss"]) == 3
    assert not (tmp_path / "touched").exists()


@pytest.mark.slow
def test_a_history_that_nests_its_parts_costs_little(tmp_path: Path) -> None:
    inner: dict[str, object] = {f"loss{i}": [1.0, 2.0] for i in range(300)}
    for _ in range(4):
        inner = {f"loss{i}": inner for i in range(300)}
    (tmp_path / "h.pkl").write_bytes(pickle.dumps(inner))
    readings_of(tmp_path / "h.pkl")  # 2.4e12 lists, if each were looked at


def test_numpy_arrays_go_by_their_names(tmp_path: Path) -> None:
    run = one(RECORDS / "numpy" / "train_loss.npy")
    np.testing.assert_array_equal(run.series["train/loss"].values, [2.0, 1.5, 1.25, np.nan, 1.0, 0.9])
    run = one(RECORDS / "numpy" / "history.npz")
    assert sorted(run.series) == ["train/loss", "val/loss"]
    np.save(tmp_path / "x_train.npy", np.zeros((50, 3)))
    with pytest.raises(NothingToRead):
        read_runs(tmp_path)
    np.save(tmp_path / "val_acc.npy", np.linspace(0, 1, 9, dtype=">f4"))
    np.testing.assert_allclose(one(tmp_path).series["val/accuracy"].values, np.linspace(0, 1, 9), rtol=1e-6)


@pytest.mark.parametrize("cut", [5, 9, 40, 100, 130])
def test_a_damaged_array_never_raises(tmp_path: Path, cut: int) -> None:
    data = (RECORDS / "numpy" / "train_loss.npy").read_bytes()
    (tmp_path / "loss.npy").write_bytes(data[:cut])
    (reading,) = readings_of(tmp_path / "loss.npy")
    assert reading.notes or reading.points
    (tmp_path / "loss.npy").write_bytes(data.replace(b"(6,)", b"(9" + b"9" * 40 + b",)"))
    (reading,) = readings_of(tmp_path / "loss.npy")
    assert not reading.points
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("loss.npy", data[:cut])
    (tmp_path / "history.npz").write_bytes(held.getvalue())
    readings_of(tmp_path / "history.npz")


def test_lists_go_by_the_name_of_their_file(tmp_path: Path) -> None:
    (tmp_path / "losses.txt").write_text("[0.5, nan, 0.25, -inf]")
    values = one(tmp_path / "losses.txt").series["train/loss"].values
    np.testing.assert_array_equal(values, [0.5, np.nan, 0.25, -np.inf])
    (tmp_path / "val_loss.txt").write_text("\n".join(f"{1 / n:.6e}" for n in range(1, 9)))
    assert len(one(tmp_path / "val_loss.txt").series["val/loss"]) == 8
    for name in ("numbers.json", "numbers.txt"):
        (tmp_path / name).write_text("[0.5, 0.3, 0.25, 0.2]")
        assert not any(r.points for r in readings_of(tmp_path / name))


def test_what_the_page_of_tensorboard_downloads(tmp_path: Path) -> None:
    rows = [[1.7e9 + i, 10 * i, 1 / (i + 1)] for i in range(9)]
    (tmp_path / "run-a-tag-Loss_val.json").write_text(json.dumps(rows))
    loss = one(tmp_path / "run-a-tag-Loss_val.json").series["val/loss"]
    assert (loss.clock, loss.at[-1], loss.values[1]) == ("step", 80, 0.5)


def test_one_line_of_curves_with_numbers_beside_them_is_a_history(tmp_path: Path) -> None:
    told = {"train_loss": [2.0, 1.0, 0.5], "val_loss": [2.5, 1.5, 1.25], "epochs": 3, "lr": 0.1, "best_epoch": 2}
    (tmp_path / "history.json").write_text(json.dumps(told))
    run = one(tmp_path / "history.json")
    assert run.series["train/loss"].values.tolist() == [2.0, 1.0, 0.5]
    (tmp_path / "last.json").write_text(json.dumps({"epoch": 10, "train_loss": 0.3, "val_loss": 0.4}))
    assert one(tmp_path / "last.json").series["val/loss"].values.tolist() == [0.4]


def test_a_table_without_names_is_placed_by_its_first_column(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("".join(f"{i * 100},{1 / (i + 1):.4f},0.5\n" for i in range(9)))
    run = one(tmp_path / "log.csv")
    assert (run.series["column 2"].clock, run.series["column 2"].at[-1]) == ("step", 800)
    assert run.series["column 2"].quantity is None
    assert any("counts by 100" in note.text for note in run.notes)
    (tmp_path / "log.csv").write_text("".join(f"{i % 7},{1 / (i + 1):.4f},0.5\n" for i in range(21)))
    run = one(tmp_path / "log.csv")
    assert [s.kind for s in run.segments] == ["first", "relaunch", "relaunch"]
    (tmp_path / "odd.csv").write_text("".join(f"{i * i},{1 / (i + 1):.4f}\n" for i in range(9)))
    assert one(tmp_path / "odd.csv").series["column 1"].clock == "row"
    (tmp_path / "wave.log").write_text("".join(f"{123870 + i}:\t{-5 + i / 9:.6f}\n" for i in range(9)))
    assert one(tmp_path / "wave.log").series["column 2"].at[0] == 123870


def test_two_files_that_were_begun_again_keep_their_longest_launch_each(tmp_path: Path) -> None:
    for name, top in (("train", 2.0), ("val", 3.0)):
        rows = [f"{i},{top / (i + 1)}" for i in range(6)] + [f"{i},{top / (i + 2)}" for i in range(9)]
        (tmp_path / f"{name}.csv").write_text("epoch,loss\n" + "\n".join(rows))
    run = one(tmp_path)
    assert len(run.series["train/loss"]) == len(run.series["val/loss"]) == 9


def test_a_table_that_is_drawn_is_cut_where_two_blanks_stand(tmp_path: Path) -> None:
    rows = [f"{e:<10}{1 / (e + 1):.6f}    {1.5 / (e + 1):.6f}    0.9{e}  00:1{e}     " for e in range(6)]
    (tmp_path / "fastai.txt").write_text("\n".join(["epoch     train_loss  valid_loss  accuracy  time    ", *rows]))
    run = one(tmp_path / "fastai.txt")
    assert run.series["val/loss"].values[:2].tolist() == [1.5, 0.75]
    assert run.series["val/loss"].clock == "epoch"
    rows = [f"{s:<10}[{s + 1:.2e}, 3.0e-01]    [2.0e+00, nan]    []    " for s in range(0, 5000, 1000)]
    (tmp_path / "xde.log").write_text(
        "\n".join(["Step      Train loss              Test loss         Test metric   ", *rows])
    )
    run = one(tmp_path / "xde.log")
    assert run.series["train/loss"].at.tolist() == [0, 1000, 2000, 3000, 4000]
    assert np.isnan(run.series["test/loss.1"].values).all()
    (tmp_path / "talk.txt").write_text("Name  of  things\n1  two  three\n4  five  six\n7  eight  nine\n")
    assert not any(r.points for r in readings_of(tmp_path / "talk.txt"))
