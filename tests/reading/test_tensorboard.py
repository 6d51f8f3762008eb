"""TensorBoard event files: every scalar, in file order, exact, through damage."""

from __future__ import annotations

import json
import math
import random
import struct
from pathlib import Path

import numpy as np
import pytest
import tb_writer as tb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wheeltapper.reading import head_of, readings_of
from wheeltapper.reading import tensorboard as reader
from wheeltapper.reading._crc32c import byte_table, crc32c, length_crcs, masked
from wheeltapper.reading.record import Points, Reading

Row = tuple[int, float, float, float]  # record, wall, step, value


def save(folder: Path, *parts: bytes) -> Path:
    path = folder / "events.out.tfevents.1700000000.host.1.0"
    path.write_bytes(b"".join(parts))
    return path


def only(path: Path) -> Reading:
    [reading] = reader.read(path)
    return reading


def rows(points: Points) -> list[Row]:
    walls = points.clocks["second"]
    return list(zip(points.lines.tolist(), walls.tolist(), points.at.tolist(), points.values.tolist(), strict=True))


def table(reading: Reading) -> dict[str, list[Row]]:
    return {points.name: rows(points) for points in reading.points}


def f32(value: float) -> float:
    return float(np.float32(value))


def test_checksums_are_castagnoli() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    data = bytes(range(40))
    parts = crc32c(bytes(40))
    for i, byte in enumerate(data):
        parts ^= int(byte_table(39 - i)[byte])
    assert parts == crc32c(data)
    lengths = np.array([0, 1, 255, 256, 70_000, 2**40], np.uint64)
    assert length_crcs(lengths).tolist() == [masked(crc32c(struct.pack("<Q", n))) for n in lengths.tolist()]


def test_one_scalar(tmp_path: Path) -> None:
    path = save(tmp_path, tb.version(10.0), tb.event(11.5, 7, tb.scalar("train/loss", 0.1)))
    reading = only(path)
    assert table(reading) == {"train/loss": [(2, 11.5, 7.0, f32(0.1))]}
    [points] = reading.points
    assert points.clock == "step"
    assert reading.format == "TensorBoard events"
    assert [(f.name, f.value) for f in reading.facts] == [("started_at", 10.0)]
    assert reader.sniff(head_of(path)) == 1.0


def test_not_finite_values_and_negative_steps_are_data(tmp_path: Path) -> None:
    values = [math.nan, math.inf, -math.inf, -0.0]
    path = save(tmp_path, *(tb.event(1.0, -5 + i, tb.scalar("x", v)) for i, v in enumerate(values)))
    [points] = only(path).points
    assert np.array_equal(points.values, values, equal_nan=True)
    assert math.copysign(1, points.values[3]) == -1
    assert points.at.tolist() == [-5, -4, -3, -2]


ENCODINGS = {
    "simple": (tb.scalar("x", 2.5), 2.5),
    "float content": (tb.tensor("x", 1, tb.packed(4, struct.pack("<f", 2.5))), 2.5),
    "float_val packed": (tb.tensor("x", 1, tb.packed(5, struct.pack("<f", 2.5))), 2.5),
    "float_val single": (tb.tensor("x", 1, b"\x2d" + struct.pack("<f", 2.5)), 2.5),
    "double content": (tb.tensor("x", 2, tb.packed(4, struct.pack("<d", 0.1))), 0.1),
    "double_val": (tb.tensor("x", 2, tb.packed(6, struct.pack("<d", 0.1))), 0.1),
    "half content": (tb.tensor("x", 19, tb.packed(4, struct.pack("<e", 1.5))), 1.5),
    "half_val": (tb.tensor("x", 19, tb.packed(13, tb.varint(0x3E00))), 1.5),
    "bfloat16 content": (tb.tensor("x", 14, tb.packed(4, b"\xc0\x3f")), 1.5),
    "bfloat16 half_val": (tb.tensor("x", 14, tb.packed(13, tb.varint(0x3FC0))), 1.5),
    "int32 content": (tb.tensor("x", 3, tb.packed(4, struct.pack("<i", -3))), -3.0),
    "int_val": (tb.tensor("x", 3, tb.packed(7, tb.varint(-3))), -3.0),
    "int64_val": (tb.tensor("x", 9, tb.packed(10, tb.varint(1 << 40))), float(1 << 40)),
    "uint64 content": (tb.tensor("x", 23, tb.packed(4, struct.pack("<Q", 1 << 63))), float(1 << 63)),
    "bool_val": (tb.tensor("x", 10, b"\x58\x01"), 1.0),
    "left out": (tb.tensor("x", 1, b""), 0.0),
    "shape 1": (tb.tensor("x", 1, tb.packed(4, struct.pack("<f", 2.5)), shape=(1,)), 2.5),
    "no plugin": (tb.tensor("x", 1, tb.packed(4, struct.pack("<f", 2.5)), plugin=""), 2.5),
}


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("count", [1, 40], ids=["alone", "as columns"])
def test_every_encoding_of_a_scalar(tmp_path: Path, name: str, count: int) -> None:
    value, expected = ENCODINGS[name]
    path = save(tmp_path, *(tb.event(1.0 + i, i, value) for i in range(count)))
    [points] = only(path).points
    assert points.values.tolist() == [expected] * count
    assert points.at.tolist() == list(range(count))


def test_the_plugin_is_stated_only_once(tmp_path: Path) -> None:
    """A tag stays what its first record says; a one-number tensor of another plugin is no scalar."""
    number = tb.packed(4, struct.pack("<f", 1.0))
    path = save(
        tmp_path,
        tb.event(1.0, 0, tb.tensor("a", 1, number)),
        tb.event(2.0, 1, tb.tensor("a", 1, number, plugin="")),
        tb.event(1.0, 0, tb.tensor("b", 1, number, plugin="pr_curves")),
        tb.event(2.0, 1, tb.tensor("b", 1, number, plugin="")),
    )
    reading = only(path)
    assert {p.name: len(p.values) for p in reading.points} == {"a": 2}
    assert "2 pr_curve" in reading.notes[0].text


def test_merged_summaries(tmp_path: Path) -> None:
    """TF1 wrote all scalars of a step in one event."""
    path = save(tmp_path, *(tb.event(i, i, *(tb.scalar(t, i + j) for j, t in enumerate("abc"))) for i in range(50)))
    found = table(only(path))
    assert found == {t: [(i + 1, i, i, i + j) for i in range(50)] for j, t in enumerate("abc")}


def test_other_values_are_counted_not_read(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        tb.version(1.0),
        tb.event(1.0, 1, tb.histogram("h", [1.0, 2.0])),
        tb.event(1.0, 1, tb.histogram("h", [1.0] * 300)),
        tb.event(1.0, 1, tb.image("i", bytes(5000))),
        tb.event(1.0, 1, tb.text("note", "hello")),
        tb.event(1.0, 1, tb.tensor("t", 1, tb.packed(4, bytes(24)), plugin="histograms", shape=(2, 3))),
        tb.record(b"\x09" + struct.pack("<d", 1.0) + tb.packed(4, bytes(1000))),
        tb.event(1.0, 1, tb.scalar("s", 1.0)),
    )
    reading = only(path)
    assert [p.name for p in reading.points] == ["s"]
    [note] = reading.notes
    assert note.level == "info"
    assert note.text.endswith("1 graph, 3 histogram, 1 image, 1 text")


def test_a_record_longer_than_a_window_is_stepped_over(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        tb.event(1.0, 1, tb.scalar("s", 1.0)),
        tb.event(1.0, 1, tb.image("i", bytes(5 << 20))),
        tb.event(2.0, 2, tb.scalar("s", 2.0)),
    )
    reading = only(path)
    assert rows(reading.points[0]) == [(1, 1.0, 1.0, 1.0), (3, 2.0, 2.0, 2.0)]
    assert "1 record over 4 MB" in reading.notes[0].text


def test_hparams_become_a_config(tmp_path: Path) -> None:
    wanted = {"optim/lr": 2e-4, "batch": 16, "amp": True, "name": "esrgan", "a.b": 1.5}
    path = save(tmp_path, tb.version(1.0), tb.event(1.0, 0, tb.hparams(wanted)))
    [config] = only(path).configs
    assert config.format == "state"
    assert config.kind == "hparams"
    assert config.nested() == {"optim": {"lr": 2e-4}, "batch": 16, "amp": True, "name": "esrgan", "a": {"b": 1.5}}
    assert {leaf.line for leaf in config} == {2}


def test_settings_logged_as_text_become_a_config(tmp_path: Path) -> None:
    settings_ = {"learning_rate": 5e-6, "warmup": {"steps": 10}, "names": ["a"], "seed": None}
    cleanrl = "|param|value|\n|-|-|\n|lr|0.00025|\n|cuda|True|\n|env_id|CartPole-v1|"
    path = save(
        tmp_path,
        tb.event(1.0, 0, tb.text("args", json.dumps(settings_))),
        tb.event(1.0, 0, tb.text("hyperparameters", cleanrl)),
        tb.event(1.0, 0, tb.text("broken", '{"a": ')),
    )
    reading = only(path)
    first, second = reading.configs
    assert (first.kind, first.nested()) == ("args", settings_)
    assert second.nested() == {"lr": 0.00025, "cuda": True, "env_id": "CartPole-v1"}
    assert reading.notes[0].text.endswith(": 1 text")


def test_rewound_steps_stay_in_file_order(tmp_path: Path) -> None:
    steps = [*range(60), *range(30, 90)]
    path = save(
        tmp_path,
        tb.version(0.0),
        *(tb.event(i, s, tb.scalar("loss", i)) for i, s in enumerate(steps[:60])),
        tb.session(60.0, 30, status=1),
        *(tb.event(60 + i, s, tb.scalar("loss", 60 + i)) for i, s in enumerate(steps[60:])),
    )
    reading = only(path)
    assert reading.points[0].at.tolist() == steps
    assert reading.points[0].values.tolist() == list(range(120))
    [event] = reading.events
    assert (event.kind, event.line, event.at) == ("start", 62, 30.0)


def test_files_put_one_after_the_other(tmp_path: Path) -> None:
    one = tb.version(0.0) + tb.event(1.0, 5, tb.scalar("a", 1.0))
    reading = only(save(tmp_path, one, one))
    assert len(reading.points[0].values) == 2
    assert [(e.kind, e.line) for e in reading.events] == [("start", 3)]


def test_an_empty_file_says_so(tmp_path: Path) -> None:
    path = save(tmp_path)
    [reading] = readings_of(path)
    assert reading.format == "TensorBoard events"
    assert "empty" in reading.notes[0].text


def test_training_data_is_not_taken_for_events(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-00001.tfrecord"
    path.write_bytes(tb.record(tb.packed(1, tb.packed(1, b"image"))))
    assert reader.sniff(head_of(path)) == 0.0


def pattern(seed: int, n: int) -> tuple[bytes, list[bytes], dict[str, list[Row]]]:
    """A file such as real runs write: rounds of tags, evaluations between, and now and then a surprise."""
    rng = random.Random(seed)
    groups = ["train", "loss", "g/deep"]
    tags = [f"{rng.choice(groups)}/{'x' * rng.randrange(1, 9)}{i}" for i in range(rng.randrange(1, 30))]
    encode = rng.choice([tb.scalar, tb.tensor_scalar])
    parts = [tb.version(1e9)]
    expected: dict[str, list[Row]] = {}

    def put(step: int, tag: str) -> None:
        wall, value = 1e9 + len(parts) + rng.random(), f32(rng.gauss(0, 1))
        parts.append(tb.event(wall, step, encode(tag, value)))
        expected.setdefault(tag, []).append((len(parts), wall, step, value))

    every, stride, surprise = rng.randrange(5, 60), rng.choice([1, 10, 1000]), rng.random() * 0.02
    step = 0
    while len(parts) < n:
        step = max(0, step - 40 * stride) if rng.random() < 0.002 else step + stride
        order = rng.sample(tags, len(tags)) if rng.random() < surprise else tags
        for tag in order:
            if rng.random() >= surprise / 10:
                put(step, tag)
        if step % (every * stride) == 0:
            for tag in ("eval/loss", "eval/acc"):
                put(step, tag)
        if rng.random() < surprise:
            parts.append(tb.event(1.0, step, tb.histogram("h", [0.5] * rng.randrange(20, 90))))
    return b"".join(parts), parts, expected


@pytest.mark.parametrize("seed", range(12))
def test_fast_path_gives_every_point(tmp_path: Path, seed: int) -> None:
    data, _, expected = pattern(seed, 4000)
    assert table(only(save(tmp_path, data))) == expected


@pytest.mark.parametrize("seed", range(3))
def test_small_windows_give_the_same(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, _, expected = pattern(100 + seed, 3000)
    monkeypatch.setattr("wheeltapper.reading._tfrecord.WINDOW", 5000)
    assert table(only(save(tmp_path, data))) == expected


def test_random_order_of_many_tags(tmp_path: Path) -> None:
    rng = random.Random(0)
    tags = [f"t{i}/value" for i in range(200)]
    chosen = [rng.choice(tags) for _ in range(5000)]
    path = save(tmp_path, *(tb.event(i, i // 7, tb.scalar(t, i)) for i, t in enumerate(chosen)))
    found = table(only(path))
    assert sum(map(len, found.values())) == 5000
    for tag in tags:
        assert found[tag] == [(i + 1, i, i // 7, i) for i, t in enumerate(chosen) if t == tag]


WHOLE, PARTS, EXPECTED = pattern(7, 400)
ENDS = np.cumsum([len(p) for p in PARTS])


def values_of(reading: Reading) -> dict[tuple[str, float], float]:
    """Values by tag and wall time (unique here), for comparing readings of damaged copies."""
    return {
        (p.name, wall): value
        for p in reading.points
        for wall, value in zip(p.clocks["second"].tolist(), p.values.tolist(), strict=True)
    }


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, float], float]:
    return values_of(only(save(tmp_path_factory.mktemp("sound"), WHOLE)))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, len(WHOLE)))
def test_cut_anywhere_keeps_all_whole_records(tmp_path: Path, sound: dict[tuple[str, float], float], cut: int) -> None:
    reading = only(save(tmp_path, WHOLE[:cut]))
    whole = int(np.searchsorted(ENDS, cut, side="right"))
    expected = values_of(only(save(tmp_path, *PARTS[:whole])))
    assert values_of(reading) == expected
    lost = [note for note in reading.notes if note.level == "lost"]
    assert bool(lost) == (cut not in (0, *ENDS.tolist()))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.integers(0, len(WHOLE) - 1), size=st.sampled_from([1, 1, 1, 3, 40, 500]), seed=st.integers(0, 255))
def test_damage_costs_only_the_records_it_touches(
    tmp_path: Path, sound: dict[tuple[str, float], float], where: int, size: int, seed: int
) -> None:
    hurt = bytearray(WHOLE)
    rng = random.Random(seed)
    stop = min(where + size, len(hurt))
    for i in range(where, stop):
        hurt[i] ^= rng.randrange(1, 256)
    reading = only(save(tmp_path, bytes(hurt)))
    found = values_of(reading)
    first = int(np.searchsorted(ENDS, where, side="right"))
    last = int(np.searchsorted(ENDS, stop - 1, side="right"))
    must = {
        (tag, wall): value
        for tag, written in EXPECTED.items()
        for record, wall, _, value in written
        if not first + 1 <= record <= last + 1
    }
    assert must.items() <= found.items()  # nothing else is lost
    assert found.items() <= sound.items()  # nothing is made up
    silent = not any(note.level == "lost" for note in reading.notes)
    assert not silent or found == sound  # and what is lost is said


def test_damage_to_the_first_of_its_kind(tmp_path: Path) -> None:
    """A flipped bit in the plugin's name of one record must not decide about the tag (found by the test above)."""
    parts = [tb.event(i, i, tb.tensor_scalar("loss", i)) for i in range(100)]
    parts[0] = parts[0].replace(b"scalars", b"Scalars")
    [points] = only(save(tmp_path, *parts)).points
    assert points.values.tolist() == list(range(1, 100))


def test_bytes_missing_in_the_middle(tmp_path: Path, sound: dict[tuple[str, float], float]) -> None:
    middle = int(ENDS[200])
    reading = only(save(tmp_path, WHOLE[: middle - 30], WHOLE[middle:]))
    found = values_of(reading)
    assert found.items() <= sound.items()
    assert len(found) >= len(sound) - 1
    assert any(note.level == "lost" for note in reading.notes)


def test_zeros_after_a_crash(tmp_path: Path, sound: dict[tuple[str, float], float]) -> None:
    reading = only(save(tmp_path, WHOLE, bytes(8192)))
    assert values_of(reading) == sound
    assert "last 8,192 bytes" in next(note.text for note in reading.notes if note.level == "lost")


def test_hostile_lengths(tmp_path: Path) -> None:
    for length in (2**63, 2**40, 5 << 20):
        header = struct.pack("<Q", length)
        bomb = header + struct.pack("<I", tb.checksum(header)) + b"\x09" + bytes(100)
        one = tb.event(1.0, 1, tb.scalar("a", 1.0))
        reading = only(save(tmp_path, one, bomb, one))
        assert len(reading.points[0].values) == 2, length
        assert any(note.level == "lost" for note in reading.notes)


def test_hostile_tags_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheeltapper.reading._tfcolumns.MAX_TAGS", 100)
    path = save(tmp_path, *(tb.event(1.0, 1, tb.scalar(f"tag{i:04}", i)) for i in range(500)))
    reading = only(path)
    assert len(reading.points) == 100
    assert any("400 are left out" in note.text for note in reading.notes)


MANIFEST = {
    "tb-roberta-lora-lr5e-6-chance": {
        "train/loss": (1.3975, 1.3945, 1200),
        "eval/loss": (1.3915, 1.3913, 1200),
        "eval/accuracy": (0.2409, 0.2409, 1200),
    },
    "tb-roberta-lora-lr5e-5-healthy": {
        "train/loss": (1.289, 0.236, 1200),
        "eval/loss": (0.7436, 0.290, 1200),
        "eval/accuracy": (0.875, 0.9136, 1200),
    },
    "stylegan-sprites-fid-broken": {"Loss/G/loss": (3.48, 1.60, 316)},
    "yolo5-ocr-ansi-crash-at-end": {"train/box_loss": (0.0114, 0.0087, 98), "train/cls_loss": (0.0, 0.0, 98)},
}


@pytest.mark.parametrize("name", MANIFEST)
def test_real_records_give_the_numbers_of_the_manifest(shared_runs: Path, name: str) -> None:
    [path] = (shared_runs / name).glob("*tfevents*")
    [reading] = readings_of(path)
    series = {points.name: points for points in reading.points}
    for tag, (first, last, step) in MANIFEST[name].items():
        assert series[tag].values[0] == pytest.approx(first, abs=6e-4 if first < 1 else 6e-3)
        assert series[tag].values[-1] == pytest.approx(last, abs=6e-4 if last < 1 else 6e-3)
        assert series[tag].at[-1] == step
    assert not any(note.level == "lost" for note in reading.notes)


def test_equal_to_tensorboard(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    data, _, _ = pattern(55, 1500)
    path = save(tmp_path, data)
    theirs = accumulator.EventAccumulator(str(path), {"scalars": 0, "tensors": 0}, purge_orphaned_data=False)
    theirs.Reload()
    for points in only(path).points:
        if points.name in theirs.Tags()["scalars"]:
            said = [(e.wall_time, e.step, e.value) for e in theirs.Scalars(points.name)]
            assert said == [row[1:] for row in rows(points)]
