"""MLflow (files and database), trackio, W&B."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from wandb_writer import history, integer, log, run, sub

from wheeltapper.reading import readings_of
from wheeltapper.reading.record import Points, Reading

RECORDS = Path(__file__).resolve().parents[1] / "records"
RUN = "0123456789abcdef0123456789abcdef"
MLRUN = RECORDS / "mlflow" / "mlruns" / "0" / RUN


def series(reading: Reading, name: str) -> Points:
    (found,) = [p for p in reading.points if p.name == name]
    return found


def same(values: np.ndarray, wanted: list[float]) -> None:
    np.testing.assert_array_equal(values, np.array(wanted, dtype=float))


def texts(reading: Reading) -> str:
    return "\n".join(note.text for note in reading.notes)


# ---------------------------------------------------------------- MLflow


def test_mlflow_files() -> None:
    (reading,) = readings_of(MLRUN / "metrics" / "loss")
    loss = series(reading, "loss")
    same(loss.values, [2.5, np.nan, np.inf, -np.inf])
    same(loss.at, [0, 10, 20, 30])
    same(loss.clocks["second"], [1779750917.478, 1779750917.578, 1779750917.678, 1779750917.778])
    assert reading.key == RUN
    assert "the last line is cut" in texts(reading)
    (old,) = readings_of(MLRUN / "metrics" / "old_two_fields")
    assert [(p.clock, p.values.tolist()) for p in old.points] == [("row", [0.5, 0.75])]


def test_mlflow_lines_of_five_fields_keep_their_step() -> None:
    (reading,) = readings_of(MLRUN / "metrics" / "val" / "acc")
    told = {p.about: (p.name, p.at.tolist(), p.values.tolist()) for p in reading.points}
    assert told == {"cifar": ("val/acc", [0, 10], [0.5, 0.75]), "mnist": ("val/acc", [10], [0.25])}


def test_mlflow_parameters_tags_and_meta() -> None:
    (param,) = readings_of(MLRUN / "params" / "optimizer.lr")
    assert [(leaf.path, leaf.value) for leaf in param.configs[0]] == [(("optimizer.lr",), "0.001")]
    (tag,) = readings_of(MLRUN / "tags" / "mlflow.runName")
    assert [(f.name, f.value) for f in tag.facts] == [("tag/mlflow.runName", "demo-run")]
    (meta,) = readings_of(MLRUN / "meta.yaml")
    assert {f.name: f.value for f in meta.facts}["status"] == 3
    assert {param.key, tag.key, meta.key} == {RUN}


def test_a_loose_metric_file_finds_its_run_in_the_meta_beside_it(tmp_path: Path) -> None:
    for source in (MLRUN / "meta.yaml", MLRUN / "metrics" / "loss"):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    (reading,) = readings_of(tmp_path / "loss")
    assert (reading.key, reading.points[0].name) == (RUN, "loss")


def mlflow_database(path: Path) -> Path:
    db = sqlite3.connect(path)
    db.execute(
        "CREATE TABLE metrics (key TEXT, value DOUBLE, timestamp BIGINT, run_uuid TEXT, step BIGINT, is_nan BOOLEAN)"
    )
    rows = [
        ("loss", 2.5, 1000, "a", 0, 0), ("acc", 0.5, 1000, "b", 0, 0), ("loss", 0.0, 2000, "a", 10, 1),
        ("loss", 1.7976931348623157e308, 3000, "a", 20, 0), ("loss", -1.7976931348623157e308, 4000, "a", 30, 0),
        ("loss", 0.0, 5000, "a", 40, 0), ("acc", "bad", 5000, "b", 10, 0),
    ]  # fmt: skip
    db.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
    db.execute("CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT)")
    db.execute("INSERT INTO params VALUES ('lr', '0.001', 'a')")
    db.execute("CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT)")
    db.execute("INSERT INTO tags VALUES ('mlflow.user', 'me', 'b')")
    db.execute("CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT)")
    db.execute("INSERT INTO runs VALUES ('a', 'red', 'FAILED'), ('b', 'blue', 'FINISHED')")
    db.commit()
    db.close()
    return path


def test_mlflow_database(tmp_path: Path) -> None:
    first, second = readings_of(mlflow_database(tmp_path / "mlflow.db"))
    assert (first.key, second.key, first.format) == ("a", "b", "MLflow database")
    loss = series(first, "loss")
    same(loss.values, [2.5, np.nan, np.inf, -np.inf, 0.0])  # 0 with the flag is NaN; 0 without it is 0
    same(loss.at, [0, 10, 20, 30, 40])
    same(loss.clocks["second"], [1, 2, 3, 4, 5])
    assert first.configs[0].get("lr") == "0.001"
    assert {f.name: f.value for f in first.facts} == {"run_name": "red", "status": "FAILED"}
    same(series(second, "acc").values, [0.5])
    assert "1 values of acc are not numbers" in texts(second)


# ---------------------------------------------------------------- trackio


def trackio_database(path: Path, *, newer: bool) -> Path:
    db = sqlite3.connect(path)
    extra = "run_id TEXT, " if newer else ""
    key = f"id INTEGER PRIMARY KEY, {extra}"
    db.execute(f"CREATE TABLE metrics ({key}timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)")
    db.execute(f"CREATE TABLE configs ({key}run_name TEXT, config TEXT)")
    db.execute(f"CREATE TABLE alerts ({key}run_name TEXT, title TEXT, text TEXT, level TEXT, step INTEGER)")
    cells = ['{"loss": 2.5, "val": {"acc": 0.5}}', '{"loss": "NaN"}', '{"loss": Infinity, "note": "hello"}', "{broken"]
    for i, cell in enumerate(cells):
        values = (f"2026-01-01T00:00:0{i}", "red", 10 * i, cell)
        db.execute(f"INSERT INTO metrics VALUES (NULL, {'?, ' * newer}?, ?, ?, ?)", (*(("id-1",) * newer), *values))
    db.execute(
        f"INSERT INTO configs VALUES (NULL, {'?, ' * newer}?, ?)",
        (*(("id-1",) * newer), "red", '{"lr": 0.001, "opt": {"betas": [0.9, 0.99]}, "_Group": null}'),
    )
    db.execute(
        f"INSERT INTO alerts VALUES (NULL, {'?, ' * newer}?, ?, ?, ?, ?)",
        (*(("id-1",) * newer), "red", "spike", "loss jumped", "warn", 20),
    )
    db.commit()
    db.close()
    return path


@pytest.mark.parametrize("newer", [False, True])
def test_trackio(tmp_path: Path, newer: bool) -> None:
    (reading,) = readings_of(trackio_database(tmp_path / "demo.db", newer=newer))
    assert (reading.format, reading.key) == ("trackio database", "id-1" if newer else "red")
    loss = series(reading, "loss")
    same(loss.values, [2.5, np.nan, np.inf])
    same(loss.at, [0, 10, 20])
    same(np.diff(loss.clocks["second"]), [1, 1])
    same(series(reading, "val.acc").values, [0.5])
    assert [(leaf.dotted, leaf.value) for leaf in reading.configs[0]] == [
        ("lr", 0.001),
        ("opt.betas.0", 0.9),
        ("opt.betas.1", 0.99),
    ]
    (alert,) = reading.events
    assert (alert.kind, alert.text, alert.at) == ("warning", "spike: loss jumped", 20)
    assert "1 rows hold no JSON object" in texts(reading)
    assert "`note`" in texts(reading)


def test_a_database_is_never_written(tmp_path: Path) -> None:
    file = trackio_database(tmp_path / "demo.db", newer=True)
    before = file.read_bytes()
    readings_of(file)
    assert file.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["demo.db"]


def test_a_live_database_is_read_with_its_log(tmp_path: Path) -> None:
    file = trackio_database(tmp_path / "demo.db", newer=True)
    writer = sqlite3.connect(file)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("INSERT INTO metrics VALUES (NULL, 'id-1', '2026-01-01T00:00:09', 'red', 90, '{\"loss\": 1.5}')")
    writer.commit()
    assert (tmp_path / "demo.db-wal").exists()
    (reading,) = readings_of(file)
    writer.close()
    same(series(reading, "loss").at, [0, 10, 20, 90])


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "other.db")
    db.execute("CREATE TABLE metrics (name TEXT)")
    db.commit()
    db.close()
    (reading,) = readings_of(tmp_path / "other.db")
    assert (reading.points, reading.facts) == ((), ())


# ---------------------------------------------------------------- W&B


def wandb_log() -> list[bytes]:
    nan, inf = float("nan"), float("inf")
    rows = [run("abc123", {"lr": 1e-3, "opt": {"name": "adamw"}, "_wandb": {"x": 1}})]
    for i in range(6):
        value = (2.5, 2.25, nan, inf, 2.0, 1.75)[i]
        told = [("_step", i), ("_timestamp", 1700000000.0 + i), ("iter", 50 * i), ("train/loss", value)]
        rows.append(history([*told, (["a", "b"], i)]))
    return rows


def test_wandb_log(tmp_path: Path) -> None:
    file = tmp_path / "run-abc123.wandb"
    alert = sub(10, sub(1, b"spike") + sub(2, b"loss jumped"))
    surroundings = sub(26, sub(1, b"Linux") + sub(2, b"3.11.7") + sub(10, b"me@example.com") + integer(19, 2))
    file.write_bytes(log([*wandb_log(), alert, surroundings, sub(18, integer(1, -1))]))
    (reading,) = readings_of(file)
    assert (reading.format, reading.key) == ("W&B offline log", "abc123")
    loss = series(reading, "train/loss")
    same(loss.values, [2.5, 2.25, np.nan, np.inf, 2.0, 1.75])
    same(loss.at, [0, 50, 100, 150, 200, 250])  # `iter`, since _step only counts calls of log()
    same(loss.clocks["row"], [0, 1, 2, 3, 4, 5])
    same(loss.lines, [2, 3, 4, 5, 6, 7])
    same(series(reading, "a.b").values, [0, 1, 2, 3, 4, 5])
    assert [(leaf.dotted, leaf.value) for leaf in reading.configs[0]] == [("lr", 1e-3), ("opt.name", "adamw")]
    told = {f.name: f.value for f in reading.facts}
    assert told["exit_code"] == -1
    assert told["environment"] == {"os": "Linux", "python": "3.11.7", "gpu_count": "2"}
    assert [(e.kind, e.text) for e in reading.events] == [
        ("warning", "spike: loss jumped"),
        ("crash", "the process ended with code -1"),
    ]
    assert reading.notes == ()


def test_wandb_step_that_was_given_counts_steps(tmp_path: Path) -> None:
    file = tmp_path / "run-x.wandb"
    file.write_bytes(log([history([("_step", 10 * i), ("loss", 1.0 / (i + 1))]) for i in range(4)]))
    (reading,) = readings_of(file)
    same(series(reading, "loss").at, [0, 10, 20, 30])


def test_wandb_step_metric_that_was_declared_is_believed(tmp_path: Path) -> None:
    file = tmp_path / "run-x.wandb"
    declared = sub(12, sub(2, b"*") + sub(4, b"my/updates"))
    rows = [history([("_step", i), ("my/updates", 7 * i), ("loss", 1.0)]) for i in range(4)]
    file.write_bytes(log([declared, *rows]))
    (reading,) = readings_of(file)
    same(series(reading, "loss").at, [0, 7, 14, 21])


def test_wandb_records_cross_blocks_and_one_bad_checksum_costs_one_record(tmp_path: Path) -> None:
    rows = [history([("_step", i), ("loss", float(i)), ("text", "x" * 5000)]) for i in range(50)]
    data = bytearray(log(rows))
    file = tmp_path / "run-x.wandb"
    file.write_bytes(data)
    (reading,) = readings_of(file)
    same(series(reading, "loss").values, list(range(50)))
    data[5000 * 20] ^= 0xFF
    file.write_bytes(data)
    (reading,) = readings_of(file)
    assert len(series(reading, "loss").values) == 49
    assert "fail their checksum" in texts(reading)


def test_wandb_log_of_a_killed_run(tmp_path: Path) -> None:
    file = tmp_path / "run-x.wandb"
    data = log(wandb_log())
    file.write_bytes(data[:-10])
    (reading,) = readings_of(file)
    same(series(reading, "train/loss").values, [2.5, 2.25, np.nan, np.inf, 2.0])
    assert "ends in the middle of a record" in texts(reading)


def test_wandb_summary_is_facts_not_a_curve() -> None:
    (reading,) = readings_of(RECORDS / "wandb" / "wandb-summary.json")
    told = {f.name: f.value for f in reading.facts}
    assert (told["summary/train/loss"], told["summary/iter"]) == (1.5, 50)
    assert np.isnan(told["summary/val/loss"])
    assert reading.points == ()
