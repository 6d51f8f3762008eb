"""Every reader against files that are cut, shuffled, flipped, glued and hostile.

A reader may find little or nothing, but it returns, says what it lost, runs nothing, and takes a bounded
time and memory. Seeds are the records in tests/records plus a few binary files made here.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
import subprocess
import sys
import zipfile
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wheeltapper.reading import Head, head_of, readers, readings_of
from wheeltapper.reading.record import CLOCKS, Reading

HERE = Path(__file__).resolve().parent
RECORDS = HERE.parent / "records"
LONGER = int(os.environ.get("WHEELTAPPER_FUZZ", "1"))  # times the usual number of examples, for a long run
LARGEST = 60_000  # bytes of a seed: damage is what is tried here, size is for hostile.py


@cache
def seeds() -> tuple[tuple[str, bytes], ...]:
    sys.path.insert(0, str(HERE.parent / "sources"))
    import tb_writer as tb

    found = [
        (path.name, path.read_bytes()[:LARGEST])
        for path in sorted(RECORDS.rglob("*"))
        if path.is_file() and path.suffix not in (".py", ".sh")
    ]
    events = [tb.version(1.0), tb.event(1.0, 0, tb.hparams({"lr": 0.1})), tb.event(1.0, 0, tb.text("a", '{"b": 1}'))]
    events += [tb.event(2.0 + i, i, tb.scalar("loss", i), tb.tensor_scalar("acc", i)) for i in range(100)]
    found.append(("events.out.tfevents.1.host", b"".join(events)))
    header = json.dumps({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    found.append(("model.safetensors", struct.pack("<Q", len(header)) + header + bytes(16)))
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        state = {"iter": 5, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}, "args": {"lr": 0.1, "name": "x"}}
        file.writestr("net_g_5/data.pkl", pickle.dumps(state, 2))
    found.append(("net_g_5.pth", archive.getvalue()))
    return tuple(found)


def test_there_are_seeds_of_most_formats() -> None:
    assert len(seeds()) > 20


Change = tuple[str, float, int]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "cut",
                "cut",
                "flip",
                "flip",
                "drop",
                "repeat",
                "shuffle",
                "glue",
                "zeros",
                "crlf",
                "one line",
                "noise",
                "nan",
                "swap",
            ]
        ),
        st.floats(0, 1),
        st.integers(0, 10_000),
    ),
    min_size=1,
    max_size=4,
)


def changed(data: bytes, change: Change) -> bytes:
    """One kind of damage, at a place given as a fraction of the file."""
    kind, where, seed = change
    rng = random.Random(seed)
    at = int(where * len(data))
    length = rng.choice([1, 3, 50, 2000])
    lines = data.split(b"\n")
    if kind == "cut":
        return data[:at]
    if kind == "flip":
        spots = bytearray(data)
        for _ in range(rng.choice([1, 1, 20]) if data else 0):
            spots[rng.randrange(len(spots))] ^= 1 << rng.randrange(8)
        return bytes(spots)
    if kind == "drop":
        return data[:at] + data[at + length :]
    if kind == "repeat":
        return data[:at] + data[at : at + length] * 3 + data[at:]
    if kind == "shuffle":
        rng.shuffle(lines)
        return b"\n".join(lines)
    if kind == "glue":
        return data[:at] + seeds()[seed % len(seeds())][1][:20_000] + data[at:]
    if kind == "zeros":
        return data[:at] + bytes(length) + data[at:]
    if kind == "crlf":
        return data.replace(b"\n", b"\r\n")
    if kind == "one line":
        return data.replace(b"\n", rng.choice([b" ", b"\r", b"", b"\t"]))
    if kind == "noise":
        return data[:at] + rng.randbytes(length) + data[at:]
    if kind == "nan":
        return data.replace(
            rng.choice([b"0.", b"1", b"e-"]), rng.choice([b"nan", b"inf", b"-Infinity", b"1e999", b"--"]), 5
        )
    head, tail = data[:at], data[at:]
    return tail + head


def sound(readings: list[Reading]) -> None:
    """What every answer must be, whatever the file was."""
    assert readings
    for reading in readings:
        assert reading.format
        for points in reading.points:
            assert points.clock in CLOCKS
            assert points.values.dtype == np.float64
            assert points.at.dtype == np.float64
            assert points.lines.dtype == np.int64
            assert not points.values.flags.writeable
            assert isinstance(points.name, str)
        for note in reading.notes:
            assert note.text
            assert note.level in ("info", "repaired", "lost")
        for event in reading.events:
            assert len(event.text) < 20_000
        for config in reading.configs:
            config.nested()


QUICK = settings(
    deadline=10_000, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], print_blob=True
)


@settings(QUICK, max_examples=150 * LONGER)
@given(which=st.integers(0, 10_000), changes=CHANGES)
def test_damaged_files(tmp_path: Path, which: int, changes: list[Change]) -> None:
    name, data = seeds()[which % len(seeds())]
    for change in changes:
        data = changed(data, change)
    path = tmp_path / name
    path.write_bytes(data)
    sound(readings_of(path))


@settings(QUICK, max_examples=100 * LONGER)
@given(reader=st.integers(0, 10_000), which=st.integers(0, 10_000), changes=CHANGES)
def test_any_reader_on_any_file(tmp_path: Path, reader: int, which: int, changes: list[Change]) -> None:
    """A reader may be handed a file of another format: sniffing is a guess."""
    module = readers()[reader % len(readers())]
    name, data = seeds()[which % len(seeds())]
    for change in changes:
        data = changed(data, change)
    path = tmp_path / name
    path.write_bytes(data)
    assert 0.0 <= float(module.sniff(head_of(path))) <= 1.0
    for reading in module.read(path):
        sound([reading])


@settings(QUICK, max_examples=150 * LONGER)
@given(data=st.binary(max_size=400) | st.text(max_size=400).map(lambda t: t.encode("utf-8", "surrogatepass")))
def test_sniffing_never_fails(data: bytes) -> None:
    for name in ("train.log", "metrics.csv", "x.json", "x.jsonl", "a.yaml", "model.pth", "x.db", "progress.csv"):
        head = Head(Path(name), len(data), data)
        for reader in readers():
            assert 0.0 <= float(reader.sniff(head)) <= 1.0, reader.__name__


@pytest.mark.slow
def test_hostile_files_are_bounded(tmp_path: Path) -> None:
    """Under a limit of memory and time, in a process of its own: see hostile.py for the list."""
    command = [sys.executable, str(HERE / "hostile.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    failures = [json.loads(line) for line in done.stdout.splitlines()]
    assert not list(tmp_path.rglob("wheeltapper_fuzz_ran"))
    assert [(f["kind"], f["file"], f["problem"]) for f in failures] == []
