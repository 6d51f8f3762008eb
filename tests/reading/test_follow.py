"""A file read in looks while it grows tells what it tells when it is read at once, and costs what was appended."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tb_writer as tb
from hypothesis import given, settings
from hypothesis import strategies as st
from wandb_writer import history, log, run

from wheeltapper.reading import Head, ranked, readings_of
from wheeltapper.reading.follow import WAIT_LOOKS, Follower, takes_tail
from wheeltapper.reading.record import Points, Reading

RECORDS = Path(__file__).resolve().parents[1] / "records"


def grown() -> list[Path]:
    """Every record of a format that is appended to."""
    out = []
    for path in sorted(p for p in RECORDS.rglob("*") if p.is_file() and p.suffix not in {".py", ".sh", ".yaml", ".toml"}):
        data = path.read_bytes()[:65536]
        claim = next(ranked(Head(path, path.stat().st_size, data)), None)
        if claim is not None and takes_tail(claim[1]):
            out.append(path)
    return out


def plain(value: Any) -> Any:
    """For comparing: arrays by their bytes (NaN is NaN), records by their fields."""
    if isinstance(value, np.ndarray):
        return [("nan" if x != x else x) for x in value.tolist()]
    if isinstance(value, Points | Reading):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [plain(inner) for inner in value]
    return "nan" if isinstance(value, float) and value != value else value


def told(readings: list[Reading]) -> Any:
    """What was told, in an order of its own: a column that comes to life later comes later."""
    out = sorted((plain(r) for r in readings), key=lambda r: str(r["key"]))
    for reading in out:
        reading["points"].sort(key=lambda p: str((p["name"], p["split"], p["about"], p["clock"], p["rank"], p["window"])))
    return out


def in_looks(path: Path, data: bytes, cuts: list[int], follower: Follower) -> list[Reading]:
    """Write `data` up to each cut in turn, with a look after each."""
    with path.open("wb") as file:
        before = 0
        for cut in [*sorted(cuts), len(data)]:
            file.write(data[before:cut])
            file.flush()
            before = max(before, cut)
            readings = follower.readings(path)
    for _ in range(WAIT_LOOKS):  # it does not grow any more: a last line without its end counts
        readings = follower.readings(path)
    return readings


@pytest.mark.parametrize("record", grown(), ids=lambda p: str(p.relative_to(RECORDS)))
def test_reading_in_looks_is_reading_at_once(record: Path, tmp_path: Path) -> None:
    data = record.read_bytes()
    folder = tmp_path / record.parent.relative_to(RECORDS)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / record.name
    for seed in range(4):
        rng = random.Random(seed)
        cuts = sorted(rng.sample(range(len(data)), min(len(data), rng.choice([1, 3, 12]))))
        seen = in_looks(path, data, cuts, Follower())
        assert told(seen) == told(readings_of(path)), f"cuts at {cuts}"


def test_the_records_hold_many_formats() -> None:
    assert len(grown()) >= 40


def events(seed: int, n: int) -> bytes:
    rng = random.Random(seed)
    out = [tb.version(1.0), tb.event(1.0, 0, tb.hparams({"lr": 0.1}))]
    for step in range(n):
        tags = ("loss", "lr", "acc")[: rng.choice([1, 2, 3, 3, 3])]
        out += [tb.event(2.0 + step, step, tb.scalar(tag, rng.random())) for tag in tags]
        if rng.random() < 0.05:
            out.append(tb.event(2.0 + step, step, tb.histogram("h", [0.0, 1.0])))
    return b"".join(out)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(0, 400), cuts=st.lists(st.floats(0, 1), max_size=8))
def test_event_files_in_looks(tmp_path_factory: pytest.TempPathFactory, seed: int, n: int, cuts: list[float]) -> None:
    path = tmp_path_factory.mktemp("tb") / "events.out.tfevents.1.host"
    data = events(seed, n)
    seen = in_looks(path, data, [int(c * len(data)) for c in cuts], Follower())
    assert told(seen) == told(readings_of(path))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.floats(0, 1), max_size=8), nan=st.booleans(), crlf=st.booleans())
def test_tables_in_looks(tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[float], nan: bool, crlf: bool) -> None:
    rng = random.Random(seed)
    end = "\r\n" if crlf else "\n"
    folder = tmp_path_factory.mktemp("tables")
    values = [("nan" if nan and rng.random() < 0.1 else f"{rng.random():.5f}") for _ in range(120)]
    table = end.join(["step,loss", *(f"{i},{v}" for i, v in enumerate(values))]) + end
    lines = "".join(f'{{"step": {i}, "loss": {"NaN" if v == "nan" else v}}}{end}' for i, v in enumerate(values))
    log = "".join(f"step {i} | loss {v} | lr 1e-3{end}" for i, v in enumerate(values))
    for name, text in (("a.csv", table), ("a.jsonl", lines), ("a.log", log)):
        data = text.encode()
        seen = in_looks(folder / name, data, [int(c * len(data)) for c in cuts], Follower())
        assert told(seen) == told(readings_of(folder / name))


def test_wandb_in_looks(tmp_path: Path) -> None:
    rows = [history([("_step", i), ("loss", 1.0 / (i + 1)), ("pad", "x" * (i % 90))]) for i in range(2000)]
    data = log([run("abc", {"lr": 0.1}), *rows])
    path = tmp_path / "run-x.wandb"
    rng = random.Random(0)
    seen = in_looks(path, data, [rng.randrange(len(data)) for _ in range(20)], Follower())
    assert told(seen) == told(readings_of(path))


def bytes_read() -> int:
    """What this process has asked the kernel for, whoever asked."""
    with open("/proc/self/io", encoding="ascii") as file:
        return int(file.readline().split()[1])


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="counts reads by /proc")
@pytest.mark.parametrize("kind", ["events", "csv", "jsonl", "log"])
def test_a_look_reads_what_was_appended(kind: str, tmp_path: Path) -> None:
    path = tmp_path / {"events": "events.out.tfevents.1.h", "csv": "a.csv", "jsonl": "a.jsonl", "log": "a.log"}[kind]
    if kind == "events":
        body = events(0, 30_000)
    elif kind == "csv":
        body = ("step,loss\n" + "".join(f"{i},{1 / (i + 1):.9f}\n" for i in range(60_000))).encode()
    elif kind == "jsonl":
        body = "".join(f'{{"step": {i}, "loss": {1 / (i + 1):.9f}}}\n' for i in range(40_000)).encode()
    else:
        body = "".join(f"[{i}] step {i} loss {1 / (i + 1):.9f} time 0.1 s\n" for i in range(30_000)).encode()
    assert len(body) > 1_000_000
    follower = Follower()
    path.write_bytes(body[: len(body) // 2])
    follower.readings(path)
    rest = body[len(body) // 2 :]
    looks = 50
    piece = len(rest) // looks
    before = bytes_read()
    for i in range(looks):
        with path.open("ab") as file:
            file.write(rest[i * piece : (i + 1) * piece])
        follower.readings(path)
    read = bytes_read() - before
    # Each look compares a few bytes at the seam. A log of unknown make is read twice, for its shapes and for its rows,
    # and searched in four windows of 64 KiB each time it has doubled.
    most = 1.1 * len(rest) if kind != "log" else 2.2 * len(rest) + 2 * 4 * 65536
    assert read < most + looks * 4096, (read, len(rest))
    before = bytes_read()
    for _ in range(20):
        follower.readings(path)
    assert bytes_read() - before < 20 * 256  # nothing was written, nothing is read


# ---------------------------------------------------------------- what happens to files


def csv(n: int, start: int = 0) -> str:
    return "step,loss\n" + "".join(f"{i},{1 / (i + 1)}\n" for i in range(start, start + n))


def losses(follower: Follower, path: Path) -> list[float]:
    return [v for r in follower.readings(path) for p in r.points if p.name == "loss" for v in p.values.tolist()]


def test_a_file_that_was_cut_is_read_again(tmp_path: Path) -> None:
    path, follower = tmp_path / "a.csv", Follower()
    path.write_text(csv(50))
    assert len(losses(follower, path)) == 50
    path.write_text(csv(3, start=7))
    assert losses(follower, path) == [1 / 8, 1 / 9, 1 / 10]
    assert any("shorter than before" in n.text for r in follower.readings(path) for n in r.notes)


def test_a_file_that_was_replaced_is_read_again_even_if_it_is_longer(tmp_path: Path) -> None:
    path, follower = tmp_path / "a.csv", Follower()
    path.write_text(csv(50))
    losses(follower, path)
    other = tmp_path / "new"
    other.write_text(csv(80, start=100))
    os.replace(other, path)
    assert losses(follower, path) == [1 / (i + 1) for i in range(100, 180)]


def test_a_file_rewritten_whole_with_more_rows_goes_on(tmp_path: Path) -> None:
    """Some loggers write the whole table anew each time, under another name first."""
    path, follower = tmp_path / "a.csv", Follower()
    for n in (50, 60, 90):
        (tmp_path / "new").write_text(csv(n))
        os.replace(tmp_path / "new", path)
        assert len(losses(follower, path)) == n


def test_a_header_that_grows_changes_the_table(tmp_path: Path) -> None:
    path, follower = tmp_path / "a.csv", Follower()
    path.write_text(csv(50))
    losses(follower, path)
    path.write_text("step,loss,acc\n" + "".join(f"{i},{1 / (i + 1)},0.5\n" for i in range(51)))
    names = {p.name for r in follower.readings(path) for p in r.points}
    assert names == {"loss", "acc"}
    assert len(losses(follower, path)) == 51


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    path, follower = tmp_path / "a.csv", Follower()
    path.write_text(csv(20) + "20,0.1")
    assert losses(follower, path)[-1] == 1 / 20
    with path.open("a") as file:
        file.write("25\n")
    assert losses(follower, path)[-1] == 0.125


def test_half_a_line_that_never_ends_counts_in_the_end(tmp_path: Path) -> None:
    path, follower = tmp_path / "a.csv", Follower()
    path.write_text(csv(20) + "20,0.125")
    for _ in range(WAIT_LOOKS):
        losses(follower, path)
    assert losses(follower, path)[-1] == 0.125
    with path.open("a") as file:  # and it was not the end after all
        file.write("75\n21,0.1\n")
    assert losses(follower, path)[-2:] == [0.12575, 0.1]


def test_a_look_at_all_files_says_whether_there_is_news(tmp_path: Path) -> None:
    path, follower = tmp_path / "a.csv", Follower()
    path.write_text(csv(20))
    assert follower.look([path])
    assert not follower.look([path])
    with path.open("a") as file:
        file.write("20,0.5\n")
    assert follower.look([path])
    assert len(follower.kept(path)[0].points[0].values) == 21
    path.unlink()
    assert follower.look([])
    assert not follower.look([])


def test_a_clock_that_goes_back_does_not_matter(tmp_path: Path) -> None:
    path, follower = tmp_path / "a.csv", Follower()
    path.write_text(csv(20))
    losses(follower, path)
    with path.open("a") as file:
        file.write("20,0.5\n")
    os.utime(path, (1.0, 1.0))  # the file server's clock is decades behind
    assert losses(follower, path)[-1] == 0.5


def test_formats_that_are_written_whole_are_read_when_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = RECORDS / "hf_state" / "trainer_state.json"
    path, follower = tmp_path / "trainer_state.json", Follower()
    shutil.copy(source, path)
    assert told(follower.readings(path)) == told(readings_of(path))
    calls: list[Path] = []
    monkeypatch.setattr("wheeltapper.reading.follow.readings_of", lambda p: calls.append(p) or [])
    assert follower.readings(path)
    assert calls == []


def test_a_checkpoint_that_is_being_written_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, follower = tmp_path / "step_1200.safetensors", Follower()
    path.write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ")
    monkeypatch.setattr("wheeltapper.reading.checkpoint_file.open_content", lambda *_: pytest.fail("opened"))
    [reading] = follower.readings(path)
    assert reading.checkpoints[0].step == 1200
    path.write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{}")  # cut while it is written anew
    assert follower.readings(path)[0].checkpoints[0].size == 10
