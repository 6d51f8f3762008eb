"""Damaged logs never raise, never hang, and what is whole in them is still read."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reading.text_logs import RECORDS, series

from wheeltapper.reading import Head, readers, readings_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Explain
from wheeltapper.reading.generic_text import KNOWN
from wheeltapper.reading.nanogpt import explain as nano

FOLDERS = ["tqdm", "generic_text", *(reader.__name__.rpartition(".")[2] for reader in KNOWN)]
LOGS = sorted(path for folder in FOLDERS for path in (RECORDS / folder).glob("*"))
BYTES = {path: path.read_bytes() for path in LOGS}


def read_bytes(data: bytes, name: str = "a.log") -> None:
    """Read with every text reader, whatever it would claim; all the invariants of a Reading must hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        for found in readings_of(path):
            for points in found.points:
                assert len(points.values) == len(points.at) == len(points.lines)
                assert np.all(points.lines >= 1)
        for reader in KNOWN:
            reader.read(path)


def test_there_are_logs_to_damage() -> None:
    assert len(LOGS) > 30


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(LOGS), st.integers(0, 10_000))
def test_truncated(path: Path, cut: int) -> None:
    data = BYTES[path]
    read_bytes(data[: cut % (len(data) + 1)])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(LOGS), st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 7)), min_size=1, max_size=40))
def test_bit_flips(path: Path, flips: list[tuple[int, int]]) -> None:
    data = bytearray(BYTES[path])
    for where, bit in flips:
        data[where % len(data)] ^= 1 << bit
    read_bytes(bytes(data))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(LOGS), st.randoms(use_true_random=False))
def test_shuffled_lines(path: Path, shuffler: random.Random) -> None:
    lines = BYTES[path].split(b"\n")
    shuffler.shuffle(lines)
    read_bytes(b"\n".join(lines))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=2000))
def test_any_bytes(data: bytes) -> None:
    read_bytes(data)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.sampled_from(
            ["loss", "epoch", "step", ":", "=", " ", "\t", "[", "]", "(", ")", "/", "|", "1", "2.5", "nan", "1e-3", ",", "%|", "%",
             "\r", "iter", "Epoch", "Namespace(", "Traceback (most recent call last):", "File \"x\", line 3", "-", "#", "val"]
        ),
        max_size=60,
    )
)  # fmt: skip
def test_any_words(words: list[str]) -> None:
    text = "".join(words)
    read_bytes("\n".join([text] * 6).encode())


def test_merge_conflicts_and_lfs_pointers(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    rows = [f"step {i}: train loss {3 - i / 100:.4f}, val loss {3 - i / 200:.4f}" for i in range(0, 100, 10)]
    log.write_text("\n".join([*rows[:5], "<<<<<<< HEAD", *rows[5:7], "=======", rows[7], ">>>>>>> other", *rows[8:]]))
    assert len(series(readings_of(log)[0], "val loss").values) == 10
    pointer = tmp_path / "b.log"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n")
    assert not readings_of(pointer)[0].points


@pytest.mark.parametrize("seed", range(3))
def test_fast_and_slow_paths_agree(tmp_path: Path, seed: int) -> None:
    """A learnt shape must read exactly what the explanation of each line would have read."""
    dice = random.Random(seed)
    words = ["0.5", "nan", "-inf", "1e-4", "12", "1,234", "3.", "-0.25"]
    path = tmp_path / "a.log"
    lines = []
    for i in range(300):
        extra = f", norm {dice.choice(words[:5])}" if dice.random() < 0.3 else ""
        lines.append(f"iter {i}: loss {dice.choice(words)}, time {dice.choice(words[:5])}ms{extra}")
        if dice.random() < 0.2:
            lines.append(f"talk about {i}")
    path.write_text("\n".join(lines))

    def never_learn(explain: Explain) -> Explain:
        def inner(body: str, line: int):  # type: ignore[no-untyped-def]
            row = explain(body, line)
            return row and type(row)(row.fields, learn=False)

        return inner

    fast, slow = read_log(path, "x", nano), read_log(path, "x", never_learn(nano))
    assert {p.name for p in fast.points} == {p.name for p in slow.points} == {"loss", "time", "norm"}
    for a, b in zip(fast.points, slow.points, strict=True):
        np.testing.assert_array_equal(a.values, b.values)
        np.testing.assert_array_equal(a.at, b.at)
        np.testing.assert_array_equal(a.lines, b.lines)


def test_hostile_lines_take_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    bad = ["1 " * 20_000, "a: " * 20_000, "[" * 40_000, "epoch " * 8_000, "0.1, " * 9_000, "((((" * 9_000]
    bad.append(" " * 60_000 + "x")
    path.write_text("\n".join(bad * 3))
    start = time.process_time()
    for reader in KNOWN:
        reader.read(path)
    readings_of(path)
    assert time.process_time() - start < 20


def test_sniffing_hostile_heads_is_quick() -> None:
    start = time.process_time()
    for text in (b"epoch " * 10_900, b"1/1 " * 16_000, b"\n" * 65_000, b"[[" * 32_000, b"a" * 65_000, b"0: " * 21_000):
        head = Head(Path("a.log"), len(text), text)
        for reader in readers():
            assert 0 <= reader.sniff(head) <= 1
    assert time.process_time() - start < 20


def test_deep_indentation_is_sniffed_in_one_pass(tmp_path: Path) -> None:
    data = b"".join(b" " * i + b"a:\n" for i in range(360))  # as much as a head holds
    begun = time.process_time()
    for reader in KNOWN:
        assert reader.sniff(Head(tmp_path / "train.log", len(data), data)) == 0
    assert time.process_time() - begun < 1


def test_a_log_without_rows_says_so(tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    file.write_bytes(b"loss loss\n..: epoch\n" * 3)
    (reading,) = readings_of(file)
    assert not reading.points
    assert reading.notes
