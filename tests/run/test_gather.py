"""A path -> the runs that lie there: grouping, bounds, links that loop, errors that help."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wheeltapper.errors import InputError, NothingToRead
from wheeltapper.run.gather import read_runs

ROWS = "epoch,train_loss,val_loss\n" + "".join(f"{i},{2.0 - 0.1 * i:.3f},{2.1 - 0.1 * i:.3f}\n" for i in range(8))
OTHER = "epoch,train_loss,val_loss\n" + "".join(f"{i},{3.0 - 0.1 * i:.3f},{3.1 - 0.1 * i:.3f}\n" for i in range(8))


def test_a_file_is_one_run(tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text(ROWS)
    (run,) = read_runs(tmp_path / "history.csv")
    assert run.series["train/loss"].values.tolist()[:2] == [2.0, 1.9]


def test_files_that_disagree_from_the_start_are_different_runs(tmp_path: Path) -> None:
    (tmp_path / "seed1.csv").write_text(ROWS)
    (tmp_path / "seed2.csv").write_text(OTHER)
    runs = read_runs(tmp_path)
    assert sorted(run.name for run in runs) == ["seed1", "seed2"]


def test_folders_of_a_run_belong_to_it(tmp_path: Path) -> None:
    run_folder = tmp_path / "exp1"
    (run_folder / "logs").mkdir(parents=True)
    (run_folder / "logs" / "history.csv").write_text(ROWS)
    (run_folder / "config.yaml").write_text("lr: 0.1\nbatch_size: 32\n")
    (run,) = read_runs(tmp_path)
    assert run.name == "exp1"
    assert run.configs[0].get("lr") == 0.1


def test_many_runs_in_one_folder(tmp_path: Path) -> None:
    for name, text in (("a", ROWS), ("b", OTHER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "history.csv").write_text(text)
    assert [run.name for run in read_runs(tmp_path)] == ["a", "b"]


def test_a_link_that_loops_is_walked_once(tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text(ROWS)
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    assert len(read_runs(tmp_path)) == 1


def test_nothing_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no"):
        read_runs(tmp_path / "missing")
    with pytest.raises(NothingToRead, match="holds no file that could be a log"):
        read_runs(tmp_path)
    (tmp_path / "empty.log").write_text("")
    with pytest.raises(NothingToRead, match="log is empty"):
        read_runs(tmp_path / "empty.log")
    (tmp_path / "empty.log").write_bytes(bytes(range(256)) * 40)
    with pytest.raises(NothingToRead, match="does not read as a log"):
        read_runs(tmp_path / "empty.log")
    with pytest.raises(NothingToRead, match="holds one file, and it does not read as a log"):
        read_runs(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        read_runs(tmp_path / "pipe")


def test_progress_says_how_far_the_reading_is(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "history.csv").write_text(ROWS)
    told: list[tuple[str, int, int]] = []
    read_runs(tmp_path, progress=lambda file, done, total: told.append((Path(file).parent.name, done, total)))
    assert told == [("a", 0, 2), ("b", 1, 2)]


def test_a_script_beside_the_log_is_remembered(tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text(ROWS)
    (tmp_path / "train.py").write_text("print('hello')\n")
    (run,) = read_runs(tmp_path)
    assert [Path(s).name for s in run.scripts] == ["train.py"]


def test_event_files_kept_apart_belong_to_the_run_of_the_same_name(tmp_path: Path) -> None:
    for folder in ("experiments/x2", "tb_logger/x2"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "history.csv").write_text(ROWS)
    (run,) = read_runs(tmp_path)
    assert run.name == "x2"
    assert len(run.series["train/loss"]) == 8


def test_checkpoints_further_down_that_the_log_names_belong_to_the_run(tmp_path: Path) -> None:
    """results/prior is no folder that every run has; the log says by its path that this run wrote there."""
    lines = [f"step {n}: loss {1 / n:.4f}" for n in range(1, 30)]
    lines += [
        "Saved checkpoint to results/prior/net_20.safetensors",
        "Saved checkpoint to results/prior/net_25.safetensors",
    ]
    (tmp_path / "train.log").write_text("\n".join(lines))
    (tmp_path / "results" / "prior").mkdir(parents=True)
    head = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    for name in ("net_20", "stranger"):
        file = tmp_path / "results" / "prior" / f"{name}.safetensors"
        file.write_bytes(len(head).to_bytes(8, "little") + head + bytes(4))
    (run,) = read_runs(tmp_path)
    known = {Path(c.path).name: c.exists for c in run.checkpoints}
    assert known == {"net_20.safetensors": True, "net_25.safetensors": False}
