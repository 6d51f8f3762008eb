"""Encodings, carriage returns, numbers and prefixes: what every text reader stands on."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from wheeltapper.reading import head_of
from wheeltapper.reading._lines import LINE_BYTES, chunks
from wheeltapper.reading._text import decode, head_text, measure, number, prefix_of, seconds
from wheeltapper.reading.record import Note


def lines_of(path: Path) -> tuple[list[tuple[int, str]], list[Note]]:
    notes: list[Note] = []
    out = [pair for chunk in chunks(path, notes) for pair in zip(chunk.numbers, chunk.lines, strict=True)]
    return out, notes


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,000", 1000.0), ("41.43%", 41.43), ("1.2e-3", 0.0012), ("1.71 GB", 1.71), ("26.1 it/s", 26.1),
        ("-inf", -math.inf), ("Infinity", math.inf), ("1.#INF", math.inf), ("12,345,678.5", 12345678.5), (".5", 0.5),
    ],
)  # fmt: skip
def test_number(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["nan", "-nan", "NaN", "-nan(ind)", "1.#QNAN"])
def test_nan_is_a_number(text: str) -> None:
    value = number(text)
    assert value is not None
    assert math.isnan(value)


@pytest.mark.parametrize("text", ["", "low", "N/A", "1.2.3", "1_000", "2025-11-29", "info", "1:02:03", "--1", "nano"])
def test_not_a_number(text: str) -> None:
    assert number(text) is None


def test_measure_keeps_the_unit() -> None:
    assert measure("26.1 it/s") == (26.1, "it/s")
    assert measure("41.43%") == (41.43, "%")


def test_line_numbers_are_the_files_own(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"one\r\n\r10%|a\r20%|b\nthree\r\nfour")
    assert lines_of(file)[0] == [(1, "one"), (2, "10%|a"), (2, "20%|b"), (3, "three"), (4, "four")]


def test_ansi_and_backspaces(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"\x1b[34m\x1b[1mtrain: \x1b[0mx\n1/3 [=>.]\x08\x08\x08\x083/3 [==]\n\x1b]0;title\x07y\n")
    assert lines_of(file)[0] == [(1, "train: x"), (2, "1/3 [=>.]"), (2, "3/3 [==]"), (3, "y")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-8"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "a.log"
    file.write_bytes("loss: 1.5\nsecond line é\n".encode(encoding))
    assert [text for _, text in lines_of(file)[0]] == ["loss: 1.5", "second line é"]
    assert head_text(head_of(file)).startswith("loss: 1.5")


def test_latin1_and_mojibake_are_told(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes("épreuve\n".encode("latin-1") + "it’s\n".encode().decode("cp1252").encode())
    lines, notes = lines_of(file)
    assert lines[0] == (1, "épreuve")
    assert any("Latin-1" in n.text for n in notes)
    assert any("mojibake" in n.text for n in notes)
    assert decode(b"loss: 1.5\n" * 9 + b"a\x00b")[1] == ["NUL bytes left out"]


def test_a_huge_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"first\n" + b"x" * (3 * LINE_BYTES) + b"\nthird\n")
    lines, notes = lines_of(file)
    assert [pair for pair in lines if pair[1]] == [(1, "first"), (3, "third")]
    assert [n.line for n in notes if n.level == "lost"] == [2]


def test_binary_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(bytes(range(256)) * 20)
    lines, notes = lines_of(file)
    assert lines == []
    assert notes[0].level == "lost"


def test_a_file_of_one_line_of_bars_keeps_its_states(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"".join(b"\r%d%%|##| %d/9" % (i, i) for i in range(300_000)))
    lines, notes = lines_of(file)
    assert len(lines) == 300_000
    assert {n for n, _ in lines} == {1}
    assert not notes


@pytest.mark.parametrize(
    ("line", "body", "rank"),
    [
        ("2025-12-09 12:01:43,175 INFO: [epoch: 0]", "[epoch: 0]", None),
        ("INFO - 09/02/20 13:55:22 - 0:00:00 - Epoch: [0]", "Epoch: [0]", None),
        ("[2025-10-25 20:59:50][INFO] Train batches: 625", "Train batches: 625", None),
        ("2025-09-23 21:38:15,123 - poisson_diffusion - INFO - Step 25,000: x", "Step 25,000: x", None),
        ("2021-01-01 10:00:00 | INFO | train_inner | {}", "{}", None),
        ("[default7]: iteration 1", "iteration 1", 7),
        ("[rank3]: Traceback", "Traceback", 3),
        ("[2021-06-10 20:47:51,885] [INFO] [logging.py:60:log_dist] [Rank 0] step=1", "step=1", 0),
        ("[07/05 10:00:00] ppdet.engine INFO: Epoch: [0]", "Epoch: [0]", None),
        ("[08/21 10:01:02 d2.utils.events]: eta: 1", "eta: 1", None),
        ("100: loss 0.5", "100: loss 0.5", None),
        ("- item: 3", "- item: 3", None),
        ("epoch - 1", "epoch - 1", None),
    ],
)
def test_prefixes(line: str, body: str, rank: int | None) -> None:
    found = prefix_of(line)
    assert (line[found.end :], found.rank) == (body, rank)


def test_srun_numbers_are_ranks_only_when_told() -> None:
    line = "3: TRAIN [0]"
    assert prefix_of(line).rank is None
    assert prefix_of(line, numbered=True).rank == 3


def test_seconds() -> None:
    assert seconds("09/02/20 13:55:23") == seconds("2020-09-02 13:55:23")
    assert seconds("2025-13-09 12:01:43") is None
