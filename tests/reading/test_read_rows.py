"""What every reader of rows stands on: blocks, the two fast paths against the slow ones, clocks."""

from __future__ import annotations

import csv
import json
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wheeltapper.reading import _csv, _jsonl, generic_jsonl
from wheeltapper.reading._blocks import blocks
from wheeltapper.reading._clocks import clocks_of, counted_anew, duration, steps_per_epoch
from wheeltapper.reading._table import HOLE, MOST_COLUMNS, NAN_MARK, NEG_MARK, POS_MARK, Table, TableBuilder
from wheeltapper.reading.record import Note

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(10**15), 10**15).map(float),
    st.sampled_from([0.0, -0.0, 1e-5, 5e-324, 1.7976931348623157e308]),
).filter(lambda value: value not in (HOLE, NAN_MARK, NEG_MARK, POS_MARK))  # hypothesis tries a module's constants


def test_marks_differ_and_survive_text() -> None:
    marks = [HOLE, NAN_MARK, POS_MARK, NEG_MARK]
    assert len(set(marks)) == 4
    assert [float(repr(mark)) for mark in marks] == marks


@quick
@given(data=st.binary(max_size=300), size=st.integers(1, 40))
def test_blocks_lose_nothing_and_number_lines(tmp_path: Path, data: bytes, size: int) -> None:
    text = b"x" + data.replace(b"\x00", b"0").replace(b"\r", b"\n")  # no BOM, no lone carriage returns
    file = tmp_path / "f"
    file.write_bytes(text)
    found = list(blocks(file, [], block=size))
    assert b"".join(part for _, part in found) == text
    seen = 1
    for first, part in found:
        assert first == seen
        seen += part.count(b"\n")
    assert all(part.endswith(b"\n") for _, part in found[:-1])


def write_csv(file: Path, names: list[str], rows: list[list[float | None]], end: str = "\n") -> None:
    with file.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator=end)
        writer.writerow(names)
        writer.writerows([["" if v is None else repr(v) for v in row] for row in rows])


def check(table: Table, names: list[str], rows: list[list[float | None]]) -> None:
    for i, name in enumerate(names):
        wanted = np.array([HOLE if row[i] is None else row[i] for row in rows], dtype=float)
        got = table.columns.get(name, np.full(len(rows), HOLE))
        np.testing.assert_array_equal(got, wanted)


@quick
@given(
    rows=st.lists(st.tuples(numbers, st.none() | numbers, st.none() | numbers).map(list), min_size=1, max_size=12),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_csv_values_come_back_exactly(tmp_path: Path, rows: list[list[float | None]], end: str) -> None:
    names = ["a", "b", "c"]
    write_csv(tmp_path / "t.csv", names, rows, end)
    table = _csv.read_table(tmp_path / "t.csv")
    check(table, names, rows)
    np.testing.assert_array_equal(table.lines, np.arange(2, len(rows) + 2))


@quick
@given(rows=st.lists(st.dictionaries(st.sampled_from(["a", "b", "c d", "é/x"]), numbers), min_size=1, max_size=12))
def test_jsonl_values_come_back_exactly(tmp_path: Path, rows: list[dict[str, float]]) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    table = _jsonl.read_table(file)
    for name in ("a", "b", "c d", "é/x"):
        wanted = [row.get(name, HOLE) for row in rows]
        np.testing.assert_array_equal(table.columns.get(name, np.full(len(rows), HOLE)), wanted)


def test_both_paths_of_the_csv_reader_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    rows: list[list[float | None]] = [
        [float(i), float(rng.normal()), None if i % 3 else float(rng.normal()), float("nan") if i % 5 else 1e-300]
        for i in range(500)
    ]
    names = ["step", "a", "b", "c"]
    write_csv(tmp_path / "t.csv", names, rows)
    fast = _csv.read_table(tmp_path / "t.csv")
    monkeypatch.setattr(_csv._Reader, "_fast", lambda *_: False)
    slow = _csv.read_table(tmp_path / "t.csv")
    check(fast, names, rows)
    check(slow, names, rows)
    np.testing.assert_array_equal(fast.lines, slow.lines)


def test_both_paths_of_the_jsonl_reader_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    file = tmp_path / "t.jsonl"
    with file.open("w") as out:
        for i in range(600):
            row: dict[str, object] = {"step": i, "loss": float("nan") if i == 7 else float(rng.normal())}
            if i % 10 == 0:
                row["eval"] = {"acc": i, "per": [i, -i]}
            if i > 300:
                row |= {"late": -float("inf"), "word": f"w{i % 2}"}
            out.write(json.dumps(row) + "\n")
    fast = _jsonl.read_table(file)
    monkeypatch.setattr(_jsonl, "_fast", lambda *_: False)
    slow = _jsonl.read_table(file)
    assert set(fast.columns) == set(slow.columns) == {"step", "loss", "eval.acc", "eval.per[0]", "eval.per[1]", "late"}
    for name, column in fast.columns.items():
        np.testing.assert_array_equal(column, slow.columns[name], err_msg=name)
    assert {name: list(words.items()) for name, words in fast.texts.items()} == {
        name: list(words.items()) for name, words in slow.texts.items()
    }
    np.testing.assert_array_equal(fast.lines, slow.lines)


def test_a_block_of_the_csv_reader_takes_the_fast_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "t.csv"
    file.write_text("step, loss,acc\n" + "".join(f"{i},  {i / 7!r},\r\n" for i in range(1, 50)))
    monkeypatch.setattr(_csv._Reader, "_slowly", lambda *_: pytest.fail("a clean table went row by row"))
    table = _csv.read_table(file)
    np.testing.assert_array_equal(table.columns["loss"], np.arange(1, 50) / 7)


def test_jsonl_with_nan_and_new_keys_takes_the_fast_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "t.jsonl"
    rows = ['{"step": 1, "loss": NaN}', '{"step": 2, "loss": -Infinity, "acc": 1}']
    rows.append('{"step": 3, "note": "loss: NaN, x", "NaN count": 4}')
    file.write_text("\n".join(rows) + "\n")
    monkeypatch.setattr(_jsonl, "_slowly", lambda *_: pytest.fail("clean rows went line by line"))
    table = _jsonl.read_table(file)
    np.testing.assert_array_equal(table.columns["loss"], [np.nan, -np.inf, HOLE])
    assert list(table.texts["note"].items()) == [(2, "loss: NaN, x")]
    np.testing.assert_array_equal(table.columns["NaN count"], [HOLE, HOLE, 4])


def test_rows_one_by_one_and_in_columns_mix() -> None:
    builder = TableBuilder("f")
    builder.add(1, [("a", 1.0)])
    builder.add_columns(np.array([2, 3]), {"b": np.array([2.0, HOLE]), "a": np.array([5.0, 6.0])})
    builder.add(4, [("b", 4.0), ("b", 7.0)])
    table = builder.table()
    np.testing.assert_array_equal(table.columns["a"], [1, 5, 6, HOLE])
    np.testing.assert_array_equal(table.columns["b"], [HOLE, 2, HOLE, 7])
    points = {p.name: p for p in table.points("row", np.arange(4.0))}
    assert points["b"].values.tolist() == [2.0, 7.0]
    assert points["b"].lines.tolist() == [2, 4]


def test_full_columns_share_their_positions() -> None:
    builder = TableBuilder("f")
    builder.add_columns(np.arange(3), {"a": np.arange(3.0), "b": np.arange(3.0), "c": np.array([HOLE, 1.0, 2.0])})
    a, b, c = builder.table().points("row", np.arange(3.0))
    assert a.at is b.at
    assert len(c.at) == 2


def clocks(**columns: list[float]) -> tuple[str, list[float], set[str]]:
    n = len(next(iter(columns.values())))
    table = Table("f", np.arange(n), {name: np.array(column) for name, column in columns.items()})
    found = clocks_of(table)
    return found.clock, found.at.tolist(), set(found.others)


def test_clock_columns() -> None:
    assert clocks(step=[1, 2], epoch=[0.1, 0.2], loss=[3, 4]) == ("step", [1, 2], {"epoch"})
    assert clocks(epoch=[1, 2], time=[0.3, 0.2]) == ("epoch", [1, 2], set())
    assert clocks(loss=[1, 2, 3], kimg=[1, 2, 3]) == ("sample", [1000, 2000, 3000], set())
    assert clocks(loss=[3.0, 2.0]) == ("row", [0, 1], set())
    assert clocks(step=[5, 5, 5], loss=[3, 2, 1]) == ("row", [0, 1, 2], set())  # a constant is no clock
    assert clocks(step=[1, HOLE, 2], loss=[3, 2, 1]) == ("step", [1, 1, 2], set())


def test_a_time_per_step_is_not_a_clock() -> None:
    assert clocks(step=[1, 2, 3, 4], time=[0.5, 0.7, 0.6, 0.8])[2] == set()
    assert clocks(step=[1, 2, 3, 4], time=[0.5, 1.7, 2.6, 3.8])[2] == {"second"}


def test_steps_within_epochs() -> None:
    epoch = np.array([1, 1, 1, 2, 2, 2, 3], dtype=float)
    inner = np.array([0, 1, 2, 0, 1, 2, 0], dtype=float)
    assert counted_anew(epoch, inner)
    assert steps_per_epoch(epoch, inner)[0] == 3
    assert not counted_anew(epoch, np.arange(7.0))


@pytest.mark.parametrize(
    ("text", "value"),
    [("0:00:30", 30), ("1 day, 0:01:40", 86500), ("2 days, 1:00:00", 176400), ("59h:30m:19s", 214219), ("x:y", None)],
)
def test_durations(text: str, value: float | None) -> None:
    assert duration(text) == value


def test_an_unreadable_file_is_a_note(tmp_path: Path) -> None:
    notes: list[Note] = []
    assert list(blocks(tmp_path, notes)) == []
    assert notes[0].level == "lost"


@pytest.mark.slow
@pytest.mark.parametrize("row", ['{"step": %d, "k%d": 1.5}\n', '{"step": %d, "loss": 1, "m": {"k%d": 1.5}}\n'])
def test_a_new_key_on_every_line_costs_what_it_says(tmp_path: Path, row: str) -> None:
    rows = MOST_COLUMNS + 2000
    file = tmp_path / "log.jsonl"
    file.write_text("".join(row % (i, i) for i in range(rows)))
    tracemalloc.start()
    (reading,) = generic_jsonl.read(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000_000  # dense columns would take rows times columns: a gigabyte
    thin = [p for p in reading.points if p.name != "loss"]
    assert [(p.values[0], p.at[0], p.lines[0]) for p in thin[:2]] == [(1.5, 0, 1), (1.5, 1, 2)]
    assert MOST_COLUMNS - 2 <= len(thin) <= MOST_COLUMNS
    (lost,) = [note for note in reading.notes if note.level == "lost"]
    assert f"{rows - len(thin):,} that came later are left out" in lost.text


def test_a_thin_column_reads_like_any_other() -> None:
    builder = TableBuilder("f")
    for i in range(100):
        builder.add(i + 1, [("step", i), *([("val", -i)] if i in (7, 90) else [])])
    sparse = np.full(100, HOLE)
    sparse[3] = np.nan
    builder.add_columns(np.arange(101, 201), {"step": np.arange(100.0), "val": sparse, "none": np.full(100, HOLE)})
    table = builder.table()
    assert list(table.columns) == ["step", "val"]
    whole = table.columns["val"]
    assert np.flatnonzero(whole != HOLE).tolist() == [7, 90, 103]
    (val,) = table.points("row", np.arange(200.0), skip={"step"})
    np.testing.assert_array_equal(val.values, [-7, -90, np.nan])
    assert val.at.tolist() == [7, 90, 103]
    half = np.arange(200) >= 50
    (late,) = table.points("row", np.arange(200.0), skip={"step"}, rows=half)
    (part,) = table.part(half).points("row", np.arange(150.0), skip={"step"})
    assert late.lines.tolist() == part.lines.tolist() == [91, 104]
    assert part.at.tolist() == [40, 53]


def test_names_of_many_columns_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    file.write_text("loss,loss (2),loss,loss\n1,2,3,4\n")
    assert [c[0] for c in _csv.read_table(file).columns.values()] == [1, 2, 3, 4]
    file.write_text("key=1, " * 40_000)
    begun = time.process_time()
    _csv.read_table(file)
    assert time.process_time() - begun < 3
