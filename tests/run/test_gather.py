"""A path -> the runs that lie there: grouping, bounds, links that loop, errors that help."""

from __future__ import annotations

import os
import time
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


def curve(begin: int, end: int, top: float, *, names: str = "epoch,train_loss,val_loss") -> str:
    rows = [f"{i},{top / (i + 1):.4f},{1.1 * top / (i + 1):.4f}" for i in range(begin, end)]
    return "\n".join([names, *rows]) + "\n"


def test_a_copy_that_ends_earlier_is_the_same_run_and_one_launch(tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text(curve(0, 20, 2.0))
    (tmp_path / "history_old.csv").write_text(curve(0, 12, 2.0))
    (run,) = read_runs(tmp_path)
    assert len(run.series["train/loss"]) == 20
    assert [s.kind for s in run.segments] == ["first"]  # the copy tells nothing of its own


def test_a_file_that_begins_where_another_ended_is_a_resume(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(curve(0, 10, 2.0))
    (tmp_path / "b.csv").write_text(curve(8, 20, 1.9))
    (run,) = read_runs(tmp_path)
    assert [s.kind for s in run.segments] == ["first", "resume"]
    assert len(run.series["train/loss"]) == 20
    assert run.segments[0].dead_from == 8


def test_other_steps_from_the_same_start_are_another_run(tmp_path: Path) -> None:
    """One logs every step, one every third: neither is a copy of the other nor goes on from it."""
    (tmp_path / "resnet.csv").write_text(curve(1, 40, 2.0))
    rows = "".join(f"{i},{3.0 / i:.4f},{3.3 / i:.4f}\n" for i in range(3, 90, 3))
    (tmp_path / "vgg.csv").write_text("epoch,train_loss,val_loss\n" + rows)
    assert sorted(run.name for run in read_runs(tmp_path)) == ["resnet", "vgg"]


def test_successive_launches_by_their_stamps_are_one_run_unless_their_names_differ(tmp_path: Path) -> None:
    (tmp_path / "20240101_120000.csv").write_text(curve(0, 5, 3.0))
    (tmp_path / "20240101_130000.csv").write_text(curve(0, 20, 2.0))
    (run,) = read_runs(tmp_path)
    assert [s.kind for s in run.segments] == ["first", "relaunch"]
    (tmp_path / "20240101_120000.csv").rename(tmp_path / "vgg_20240101_120000.csv")
    assert len(read_runs(tmp_path)) == 2


def test_what_shares_nothing_goes_with_its_namesake_else_alone(tmp_path: Path) -> None:
    (tmp_path / "seed1.csv").write_text(curve(0, 20, 2.0))
    (tmp_path / "seed2.csv").write_text(curve(0, 20, 3.0))
    (tmp_path / "seed2.jsonl").write_text("".join(f'{{"epoch": {i}, "bleu": {i / 9}}}\n' for i in range(9)))
    (tmp_path / "gpu.csv").write_text("step,power\n" + "".join(f"{i},{200 + i}\n" for i in range(9)))
    runs = {run.name: run for run in read_runs(tmp_path)}
    assert sorted(runs) == ["gpu", "seed1", "seed2"]
    assert "bleu" in " ".join(runs["seed2"].series)
    (tmp_path / "seed2.csv").unlink()
    (tmp_path / "seed2.jsonl").unlink()
    assert len(read_runs(tmp_path)) == 1  # nothing here contradicts anything


def test_held_out_scores_tell_two_formats_apart(tmp_path: Path) -> None:
    def lines(top: float) -> str:
        epochs = [(i, top / 1.1 / i, top / i) for i in range(1, 21)]
        return "".join(f"Epoch {i}/20 - train_loss: {t:.2f} - val_loss: {v:.2f}\n" for i, t, v in epochs)

    (tmp_path / "history.csv").write_text(curve(0, 20, 2.0))
    (tmp_path / "train.log").write_text(lines(2.2))  # the same numbers, to two digits, counted from 1
    assert len(read_runs(tmp_path)) == 1
    (tmp_path / "train.log").write_text(lines(4.1))
    assert sorted(run.name for run in read_runs(tmp_path)) == ["history", "train"]


def test_files_named_by_their_data_are_parts_of_one_run(tmp_path: Path) -> None:
    (tmp_path / "train_log.csv").write_text(curve(0, 9, 2.0, names="epoch,loss,odd thing"))
    (tmp_path / "val_log.csv").write_text(curve(0, 9, 3.0, names="epoch,loss,odd thing"))
    (run,) = read_runs(tmp_path)
    assert run.series["train/loss"].values[0] == 2.0
    assert run.series["val/loss"].values[0] == 3.0
    assert {"train/odd thing", "val/odd thing"} <= set(run.series)


def monitor(start: float, rows: list[tuple[float, int, float]], env: str = "Ant-v3") -> str:
    head = f'#{{"t_start": {start}, "env_id": "{env}"}}\nr,l,t\n'
    return head + "".join(f"{r},{length},{t}\n" for r, length, t in rows)


def test_monitors_of_one_vectorised_environment_are_one_run(tmp_path: Path) -> None:
    (tmp_path / "0.monitor.csv").write_text(monitor(1000.0, [(1, 10, 1.0), (3, 10, 3.0), (5, 10, 5.0)]))
    (tmp_path / "1.monitor.csv").write_text(monitor(1000.5, [(2, 20, 1.0), (4, 20, 3.0), (6, 20, 5.0)]))
    (run,) = read_runs(tmp_path)
    returns = run.series["return"]
    assert returns.values.tolist() == [1, 2, 3, 4, 5, 6]
    assert returns.clocks["step"].tolist() == [10, 30, 40, 60, 70, 90]
    assert Path(str(returns.place(3).file)).name == "1.monitor.csv"
    assert sum(not s.beside for s in run.segments) == 1
    assert any("one of 2 environments" in note.text for note in run.notes)


def test_monitors_of_another_day_or_environment_are_not(tmp_path: Path) -> None:
    rows = [(1.0, 10, 1.0), (3.0, 10, 3.0), (5.0, 10, 5.0)]
    others = [(2.0, 10, 1.0), (9.0, 10, 3.0), (4.0, 10, 5.0)]
    (tmp_path / "0.monitor.csv").write_text(monitor(1000.0, rows))
    (tmp_path / "1.monitor.csv").write_text(monitor(90000.0, others))
    assert len(read_runs(tmp_path)) == 2
    (tmp_path / "1.monitor.csv").write_text(monitor(1000.0, others, env="Hopper-v3"))
    assert len(read_runs(tmp_path)) == 2
    (tmp_path / "1.monitor.csv").write_text(monitor(float("nan"), others))
    assert len(read_runs(tmp_path)) == 2


def test_a_folder_of_many_seeds_is_read_in_seconds(tmp_path: Path) -> None:
    for seed in range(300):
        (tmp_path / f"seed{seed}.csv").write_text(curve(0, 9, 2.0 + seed / 100))
    began = time.process_time()
    assert len(read_runs(tmp_path)) == 300
    assert time.process_time() - began < 10  # two here; every pair compared in full takes a minute
