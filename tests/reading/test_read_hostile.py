"""Whatever a file holds, a reader of structured formats answers with a Reading: it never raises."""

from __future__ import annotations

import importlib
import random
import warnings
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_read_stores import MLRUN, mlflow_database, trackio_database, wandb_log
from wandb_writer import log

from wheeltapper.reading import Head, head_of, readings_of
from wheeltapper.reading.record import Reading

RECORDS = Path(__file__).resolve().parents[1] / "records"
NAMES = [
    "git_lfs", "hf_state", "llama_factory", "lightning_csv", "keras_csv", "ultralytics", "timm", "jsonl_log", "mm_json",
    "sb3", "openai_csv", "stylegan_stats", "mlflow_store", "trackio_db", "wandb_offline", "wandb_summary",
    "generic_csv", "generic_jsonl",
]  # fmt: skip
READERS = {name: importlib.import_module(f"wheeltapper.reading.{name}") for name in NAMES}
# One record each; the reader that is meant for it.
SAMPLES = {
    "hf_state": RECORDS / "hf_state/trainer_state.json",
    "llama_factory": RECORDS / "llama_factory/trainer_log.jsonl",
    "lightning_csv": RECORDS / "lightning/metrics.csv",
    "keras_csv": RECORDS / "keras/training.log",
    "ultralytics": RECORDS / "ultralytics/results_v8.csv",
    "timm": RECORDS / "timm/summary.csv",
    "jsonl_log": RECORDS / "jsonl_log/log.txt",
    "mm_json": RECORDS / "mm/20260101_000000.log.json",
    "sb3": RECORDS / "sb3/0.monitor.csv",
    "openai_csv": RECORDS / "openai/progress.csv",
    "stylegan_stats": RECORDS / "stylegan/stats.jsonl",
    "mlflow_store": MLRUN / "metrics/loss",
    "wandb_summary": RECORDS / "wandb/wandb-summary.json",
    "generic_csv": RECORDS / "generic/quirks.csv",
    "generic_jsonl": RECORDS / "generic/in_epoch.jsonl",
}
WRONG = [b"", b"\n", b"\x00\x01\x02" * 50, b"hello world\n", b"{", b"[]", b"#", b",,,\n,,\n", b'"']
JUNK = [b"\x00" * 9, b"1e999", b"NaN", b'"', b"\xff\xfe", b"{" * 300, b"[" * 3000, b"9" * 400, b"\r", b"-"]
CELLS = [b"inf", b"-inf", b"nan", b"1e308", b"-1", b"x", b"0", b"99999999999999999999"]
fuzz = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def checked(readings: list[Reading]) -> list[Reading]:
    assert readings
    for reading in readings:
        assert isinstance(reading, Reading)
        assert reading.format
        for p in reading.points:
            assert len(p.values) > 0
            assert p.name == p.name.strip()
            assert (p.lines >= 0).all()
    assert any(r.points or r.notes or r.facts or r.configs for r in readings)
    return readings


@pytest.mark.parametrize("name", NAMES)
def test_empty_and_wrong_files(tmp_path: Path, name: str) -> None:
    reader = READERS[name]
    for number, data in enumerate(WRONG):
        file = tmp_path / f"f{number}"
        file.write_bytes(data)
        reader.sniff(head_of(file))
        for reading in reader.read(file):
            assert reading.points == ()
            assert reading.notes or reading.facts or reading.configs


@pytest.mark.parametrize("name", NAMES)
def test_a_git_lfs_pointer_is_called_one(tmp_path: Path, name: str) -> None:
    sample = SAMPLES.get(name)
    file = tmp_path / (sample.name if sample else "data.db")
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:ab12\nsize 123456\n")
    (reading,) = readings_of(file)
    assert reading.format == "Git LFS pointer"
    assert "this is a Git LFS pointer, not the data of 123,456 bytes" in reading.notes[0].text
    if name not in ("trackio_db",):
        (direct,) = READERS[name].read(file)
        assert "Git LFS pointer" in direct.notes[0].text


@pytest.mark.parametrize("name", SAMPLES)
def test_each_record_is_claimed_by_its_reader_and_survives_crlf(tmp_path: Path, name: str) -> None:
    data = SAMPLES[name].read_bytes()
    unix = data.replace(b"\r\n", b"\n")
    plain = readings_of(SAMPLES[name])[0]
    folder = tmp_path
    if name == "mlflow_store":
        folder = tmp_path / MLRUN.name / "metrics"
        folder.mkdir(parents=True)
    file = folder / SAMPLES[name].name
    file.write_bytes(unix.replace(b"\n", b"\r\n"))
    windows = readings_of(file)[0]
    assert windows.format == plain.format
    assert [(p.name, p.at.tolist(), p.lines.tolist()) for p in windows.points] == [
        (p.name, p.at.tolist(), p.lines.tolist()) for p in plain.points
    ]


def hurt(data: bytes, kind: str, seed: int) -> bytes:
    rng = random.Random(seed)
    out = bytearray(data)
    if kind == "cut":
        return bytes(out[: rng.randrange(len(out) + 1)])
    if kind == "flip":
        for _ in range(rng.randrange(1, 12)):
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
        return bytes(out)
    if kind == "shuffle":
        lines = data.split(b"\n")
        rng.shuffle(lines)
        return b"\n".join(lines)
    if kind == "splice":
        at = rng.randrange(len(out))
        return bytes(out[:at]) + rng.choice(JUNK) + bytes(out[at + rng.randrange(30) :])
    cells = data.replace(b"\n", b",\n").split(b",")
    cells[rng.randrange(len(cells))] = rng.choice(CELLS)
    return b",".join(cells).replace(b",\n,", b"\n").replace(b",\n", b"\n")


@pytest.mark.parametrize("name", SAMPLES)
@fuzz
@given(kind=st.sampled_from(["cut", "flip", "shuffle", "splice", "cell"]), seed=st.integers(0, 10**9))
def test_damaged_records_are_read_or_refused(tmp_path: Path, name: str, kind: str, seed: int) -> None:
    file = tmp_path / SAMPLES[name].name
    file.write_bytes(hurt(SAMPLES[name].read_bytes(), kind, seed))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        READERS[name].sniff(head_of(file))
        checked(READERS[name].read(file))
        assert readings_of(file)


@pytest.mark.parametrize("name", SAMPLES)
@fuzz
@given(data=st.binary(max_size=400))
def test_bytes_of_any_kind(tmp_path: Path, name: str, data: bytes) -> None:
    file = tmp_path / SAMPLES[name].name
    file.write_bytes(data)
    READERS[name].sniff(head_of(file))
    checked(READERS[name].read(file))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("stores")
    (folder / "run-x.wandb").write_bytes(log(wandb_log()))
    return {
        "mlflow_store": mlflow_database(folder / "mlflow.db"),
        "trackio_db": trackio_database(folder / "trackio.db", newer=True),
        "wandb_offline": folder / "run-x.wandb",
    }


@pytest.mark.parametrize("name", ["mlflow_store", "trackio_db", "wandb_offline"])
@fuzz
@given(kind=st.sampled_from(["cut", "flip", "splice"]), seed=st.integers(0, 10**9))
def test_damaged_stores(tmp_path: Path, stores: dict[str, Path], name: str, kind: str, seed: int) -> None:
    file = tmp_path / "store.db"
    file.write_bytes(hurt(stores[name].read_bytes(), kind, seed))
    READERS[name].sniff(head_of(file))
    checked(READERS[name].read(file))
    assert readings_of(file)


def test_cutting_the_wandb_log_anywhere_keeps_whole_records(tmp_path: Path, stores: dict[str, Path]) -> None:
    data = stores["wandb_offline"].read_bytes()
    file = tmp_path / "run-x.wandb"
    most = 0
    for size in range(0, len(data) + 1, 3):
        file.write_bytes(data[:size])
        (reading,) = READERS["wandb_offline"].read(file)
        count = max((len(p.values) for p in reading.points), default=0)
        assert count >= most
        most = count


def test_a_view_that_never_ends_is_not_followed(tmp_path: Path) -> None:
    import sqlite3

    file = tmp_path / "mlflow.db"
    db = sqlite3.connect(file)
    db.execute(
        "CREATE VIEW metrics AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT 'k' AS key, x AS value, x AS timestamp, 'r' AS run_uuid, x AS step, 0 AS is_nan FROM n"
    )
    db.commit()
    db.close()
    for reader in (READERS["mlflow_store"], READERS["trackio_db"]):
        assert reader.sniff(head_of(file)) == 0
        assert checked(reader.read(file))[0].points == ()


def test_a_sniff_on_a_vanished_file_answers(tmp_path: Path) -> None:
    head = Head(tmp_path / "gone.csv", 20, b"epoch,loss\n1,2\n2,3\n")
    readers: list[ModuleType] = list(READERS.values())
    assert max(float(reader.sniff(head)) for reader in readers) > 0
