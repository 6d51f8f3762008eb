"""Checkpoints are listed without torch and without running anything that is in them."""

from __future__ import annotations

import io
import json
import os
import pickle
import pickletools
import struct
import subprocess
import sys
import zipfile
from argparse import Namespace
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wheeltapper.reading import _checkpoint_name as names
from wheeltapper.reading import checkpoint_file as reader
from wheeltapper.reading import head_of, readings_of
from wheeltapper.reading._pickle import Call, Name, load
from wheeltapper.reading.record import Checkpoint, Reading


def only(path: Path) -> tuple[Reading, Checkpoint]:
    [reading] = reader.read(path)
    [checkpoint] = reading.checkpoints
    return reading, checkpoint


def listed(checkpoint: Checkpoint) -> dict[str, tuple[tuple[int, ...], str, int]]:
    return {t.name: (t.shape, t.dtype, t.nbytes) for t in checkpoint.tensors}


def safetensors(tensors: dict[str, np.ndarray[Any, Any]], metadata: dict[str, str] | None = None) -> bytes:
    types = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "uint16": "BF16"}
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    body = b""
    for name, array in tensors.items():
        raw = array.tobytes()
        header[name] = {
            "dtype": types[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


# --- names


@pytest.mark.parametrize(
    ("name", "step", "epoch"),
    [
        ("checkpoint-1000/model.safetensors", 1000, None),
        ("checkpoint-1000/rng_state_0.pth", 1000, None),
        ("checkpoint_step_0025000.pth", 25000, None),
        ("epoch=3-step=99.ckpt", 99, 3),
        ("epoch=03-val_loss=0.12.ckpt", None, 3),
        ("net_g_ema_20000.safetensors", 20000, None),
        ("net_g_5000.pth", 5000, None),
        ("net_d_latest.pth", None, None),
        ("20000.state", 20000, None),
        ("0050000.pt", 50000, None),
        ("iter_0000100/mp_rank_00/model_optim_rng.pt", None, None),
        ("iter_0000100/model.pt", 100, None),
        ("global_step500/zero_pp_rank_0_mp_rank_00_optim_states.pt", 500, None),
        ("ckpt_5.pt", 5, None),
        ("model_iter_120000.pth", 120000, None),
        ("epoch_12.pth", None, 12),
        ("epoch12.pt", None, 12),
        ("checkpoint12.pt", None, 12),
        ("checkpoint_3_5000.pt", 5000, 3),
        ("checkpoint-12.pth.tar", None, 12),
        ("200_net_G_A.pth", None, 200),
        ("lora-10k_steps.safetensors", 10000, None),
        ("G_800.pth", 800, None),
        ("state_step000500.pt", 500, None),
        ("model-00001-of-00003.safetensors", None, None),
        ("vit_base_patch16_224.pth", None, None),
        ("4x_RealESRGAN.pth", None, None),
        ("yolov8n.pt", None, None),
        ("resnet50.pth", None, None),
        ("best.pt", None, None),
        ("pytorch_model.bin", None, None),
        ("mp_rank_00_model_states.pt", None, None),
    ],
)
def test_positions_in_names(name: str, step: float | None, epoch: float | None) -> None:
    assert names.position(Path("runs") / name) == (step, epoch)


def test_scores_and_parts_in_names() -> None:
    assert names.score(Path("epoch=3-step=99.ckpt")) is None
    assert names.score(Path("epoch=1-val_acc=0.75.ckpt")) == ("val_acc", 0.75)
    assert names.kinds(Path("net_g_ema_20000.safetensors")) == {"ema"}
    assert names.kinds(Path("schema_v2.pt")) == set()
    assert names.kinds(Path("optimizer.pt")) == {"optimizer"}
    assert names.kinds(Path("rng_state_1.pth")) == {"rng"}


# --- safetensors


def test_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "net_g_ema_20000.safetensors"
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    path.write_bytes(safetensors({"conv.weight": weight, "half": np.ones(4, np.float16)}))
    reading, checkpoint = only(path)
    assert reading.format == "safetensors"
    assert listed(checkpoint) == {"conv.weight": ((2, 3), "float32", 24), "half": ((4,), "float16", 8)}
    assert (checkpoint.step, checkpoint.epoch, checkpoint.kinds) == (20000, None, ("ema",))
    assert checkpoint.size == path.stat().st_size
    assert not reading.notes
    assert reader.sniff(head_of(path)) == 0.9


def test_training_settings_in_safetensors_metadata(tmp_path: Path) -> None:
    path = tmp_path / "lora.safetensors"
    kohya = {
        "ss_steps": "1200",
        "ss_epoch": "3",
        "ss_learning_rate": "1e-4",
        "ss_optimizer": "AdamW8bit",
        "ss_seed": "None",
    }
    path.write_bytes(safetensors({"lora_up.weight": np.zeros((4, 2), np.float32)}, kohya))
    reading, checkpoint = only(path)
    assert (checkpoint.step, checkpoint.epoch, checkpoint.kinds) == (1200, 3, ("raw", "config"))
    [config] = reading.configs
    assert config.get("ss_learning_rate") == 1e-4
    assert config.get("ss_seed", "absent") is None


@pytest.mark.parametrize("keep", [0, 4, 8, 30, 200])
def test_safetensors_cut_off(tmp_path: Path, keep: int) -> None:
    whole = safetensors({"a": np.zeros(10, np.float32), "b": np.zeros(100, np.float32)})
    path = tmp_path / "model.safetensors"
    path.write_bytes(whole[:keep])
    reading, checkpoint = only(path)
    assert any(note.level == "lost" for note in reading.notes)
    assert checkpoint.note
    if keep == 200:
        assert [t.name for t in checkpoint.tensors] == ["a", "b"]
        assert "1 of 2 tensors are not whole" in checkpoint.note


def test_hostile_safetensors_headers(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    headers = [
        b"[" * 100_000,
        b'{"a": ' * 50_000,
        json.dumps({"a": {"dtype": "F32", "shape": [2**60, 2**60], "data_offsets": [0, 4]}}).encode(),
        json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}).encode(),
        json.dumps({"a": {"dtype": "F32", "shape": "x", "data_offsets": None}}).encode(),
        json.dumps({"a": 5}).encode(),
    ]
    for text in headers:
        path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(16))
        reading, checkpoint = only(path)
        assert checkpoint.tensors == ()
        assert reading.notes[0].level == "lost"
        assert list(reader.tensor_stats(path)) == []
    path.write_bytes(struct.pack("<Q", 2**63) + b"{}")
    assert only(path)[0].notes


# --- pickles that want to run something

RAN = "wheeltapper_pickle_ran"
CALLED: list[str] = []
WATCHED = {"os.system", "subprocess.Popen", "os.exec", "os.posix_spawn"}


@pytest.fixture(scope="module")
def _watch() -> None:
    sys.addaudithook(lambda name, _: CALLED.append(name) if name in WATCHED else None)


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {RAN}",)


class HostileState:
    def __setstate__(self, state: object) -> None:
        Path(RAN).touch()

    def __getstate__(self) -> dict[str, int]:
        return {"step": 1}


HOSTILE = [
    b"cos\nsystem\n(S'touch wheeltapper_pickle_ran'\ntR.",
    b"(S'touch wheeltapper_pickle_ran'\nios\nsystem\n.",
    b"(cos\nsystem\nS'touch wheeltapper_pickle_ran'\no.",
    b'c__builtin__\neval\n(S\'open("wheeltapper_pickle_ran","w")\'\ntR.',
    pickle.dumps(Hostile(), 0),
    pickle.dumps(Hostile(), 2),
    pickle.dumps({"state_dict": {}, "x": Hostile()}, 4),
    pickle.dumps([HostileState()], 5),
]


@pytest.mark.parametrize("which", range(len(HOSTILE)))
@pytest.mark.usefixtures("_watch")
@pytest.mark.parametrize("container", ["plain", "zip", "deflated", "legacy"])
def test_no_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: int, container: str) -> None:
    monkeypatch.chdir(tmp_path)
    called: list[str] = []
    sys.addaudithook(lambda name, _: called.append(name) if name in ("os.system", "exec", "subprocess.Popen") else None)
    path = tmp_path / "model_10.pth"
    body = HOSTILE[which]
    if container == "legacy":
        head = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + pickle.dumps(1001, 2) + pickle.dumps({}, 2)
        path.write_bytes(head + body + pickle.dumps([], 2))
    elif container == "plain":
        path.write_bytes(b"\x80\x02" + body if body[:1] != b"\x80" else body)
    else:
        method = zipfile.ZIP_STORED if container == "zip" else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("model/data.pkl", body)
    CALLED.clear()
    readings = readings_of(path)
    list(reader.tensor_stats(path))
    assert not (tmp_path / RAN).exists()
    assert not CALLED
    [checkpoint] = readings[0].checkpoints
    assert checkpoint.step == 10 or checkpoint.step == 1
    if which < 7:
        assert any("would run code" in note.text for note in readings[0].notes)


def test_globals_are_never_resolved() -> None:
    loaded = load(b"cno.such.module\nthing\n(I5\ntR.", 0, 29)
    assert isinstance(loaded.value, Call)
    assert loaded.value.of == Name("no.such.module", "thing")
    assert "no.such.module" not in sys.modules


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4) | st.tuples(inner, inner)
    ),
    max_leaves=20,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(value=PLAIN, protocol=st.integers(0, 5))
def test_plain_values_come_out_as_pickle_gives_them(value: Any, protocol: int) -> None:
    body = pickle.dumps(value, protocol)
    loaded = load(body, 0, len(body))
    assert loaded.problem is None
    assert loaded.end == len(body)
    assert loaded.value == value


@settings(max_examples=300, deadline=None)
@given(
    body=st.binary(max_size=200)
    | st.lists(st.sampled_from([bytes([ord(o.code)]) for o in pickletools.opcodes]), max_size=60).map(b"".join)
)
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    load(body, 0, len(body))


def bombs() -> dict[str, bytes]:
    laughs = b"(lp0\n" + b"".join(b"(g%d\ng%d\nlp%d\n" % (i, i, i + 1) for i in range(60)) + b"."
    keys = b"}" + b")" + b"q\x00" + b"".join(b"h\x00h\x00\x86q\x00" for _ in range(60)) + b"K\x01s."
    return {
        "billion laughs": laughs,
        "tuple keys that take for ever to hash": keys,
        "a long with a billion digits": b"L" + b"9" * 60_000 + b"L\n.",
        "long4 of 2 GB": b"\x8b\xff\xff\xff\x7f.",
        "string of 4 GB": b"X\xff\xff\xff\xff.",
        "bytes of 2**63": b"\x8e" + b"\xff" * 8 + b".",
        "marks": b"(" * 200_000 + b".",
        "copies": b"("
        + b"N" * 50_000
        + b"l2"
        + b"q\x00"
        + b"cbuiltins\nlist\nq\x01"
        + b"h\x01h\x00\x85R" * 20_000
        + b".",
        "deep": b"]" * 100_000 + b"a" * 99_999 + b".",
    }


@pytest.mark.slow
def test_bombs_are_bounded(tmp_path: Path) -> None:
    """In a process of its own that may not have more than 1.5 GB, of which numpy's libraries map most."""
    for number, body in enumerate(bombs().values()):
        (tmp_path / f"model_{number}.pth").write_bytes(b"\x80\x02" + body)
    with zipfile.ZipFile(tmp_path / "model_99.pth", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("model/data.pkl", b"\x80\x02]q\x00(" + b"N" * 70_000_000)
    script = """
import resource, sys, time
from pathlib import Path
from wheeltapper.reading import checkpoint_file
resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))
for path in sorted(Path(sys.argv[1]).iterdir()):
    begun = time.process_time()
    checkpoint_file.read(path)
    assert time.process_time() - begun < 20, path
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_directories_that_lie(tmp_path: Path) -> None:
    path = tmp_path / "model.pth"
    # A directory that promises more entries than anyone needs, and one whose sizes are lies.
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0xFFFE, 0xFFFE, 46, 30, 0)
    path.write_bytes(b"PK\x03\x04" + bytes(72) + end)
    assert only(path)[1].note
    wide = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 0, 0, 0, 0, 2**60, 2**60, 2**60, 2**60)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, 4, 1)
    path.write_bytes(
        b"PK\x03\x04" + wide + locator + struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0, 0, 0)
    )
    assert only(path)[1].note


def test_a_file_that_is_something_else(tmp_path: Path) -> None:
    for name, body in [("model.pth", b"\x00\x01garbage" * 10), ("last.ckpt", b""), ("x.safetensors", b"<html>")]:
        path = tmp_path / name
        path.write_bytes(body)
        [reading] = readings_of(path)
        assert reading.notes
        assert reading.checkpoints[0].note


# --- what torch writes


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def trained(torch: Any) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.99))
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [10], 0.5)
    for _ in range(3):
        model(torch.randn(5, 3)).square().sum().backward()
        optimizer.step()
        scheduler.step()
    return model, optimizer, scheduler


@pytest.mark.parametrize("modern", [True, False], ids=["zip", "before 1.6"])
def test_a_whole_training_state(tmp_path: Path, torch: Any, modern: bool) -> None:
    model, optimizer, scheduler = trained(torch)
    path = tmp_path / "last.pth.tar"
    state = {
        "state_dict": model.state_dict(),
        "ema_state_dict": OrderedDict(model.state_dict()),
        "optimizer": optimizer.state_dict(),
        "lr_scheduler": scheduler.state_dict(),
        "scaler": {"scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "_growth_tracker": 3},
        "rng_state": torch.get_rng_state(),
        "args": Namespace(lr=2e-4, model="swinir", milestones=[10, 20]),
        "epoch": 7,
        "global_step": 3,
        "best_metric": np.float64(31.5),
        "nothing": None,
    }
    torch.save(state, path, _use_new_zipfile_serialization=modern)
    reading, checkpoint = only(path)
    assert (checkpoint.step, checkpoint.epoch) == (3, 7)
    assert checkpoint.kinds == ("raw", "ema", "optimizer", "scheduler", "scaler", "rng", "config")
    assert checkpoint.metric == ("best_metric", 31.5)
    assert checkpoint.keys == tuple(state)
    tensors = listed(checkpoint)
    assert tensors["state_dict.0.weight"] == ((4, 3), "float32", 48)
    assert tensors["ema_state_dict.1.num_batches_tracked"] == ((), "int64", 8)
    assert tensors["optimizer.state.0.exp_avg"] == ((4, 3), "float32", 48)
    assert checkpoint.values["optimizer.param_groups.0.lr"] == 2e-4
    assert checkpoint.values["optimizer.step"] == 3
    assert checkpoint.values["lr_scheduler.last_epoch"] == 3
    assert checkpoint.values["scaler.scale"] == 65536.0
    [config] = reading.configs
    assert (config.kind, config.nested()) == ("args", {"lr": 2e-4, "model": "swinir", "milestones": [10, 20]})
    assert not any(note.level == "lost" for note in reading.notes)


def test_kinds_by_layout(tmp_path: Path, torch: Any) -> None:
    """BasicSR's two files, HF's optimizer and scheduler files, an LDM with its average inside."""
    model, optimizer, scheduler = trained(torch)
    weights = model.state_dict()
    cases: dict[str, tuple[Any, tuple[str, ...], float | None]] = {
        "net_g_5000.pth": ({"params": weights, "params_ema": weights}, ("raw", "ema"), 5000),
        "5000.state": (
            {"epoch": 1, "iter": 4990, "optimizers": [optimizer.state_dict()], "schedulers": [scheduler.state_dict()]},
            ("optimizer", "scheduler"),
            4990,
        ),
        "optimizer.pt": (optimizer.state_dict(), ("optimizer",), None),
        "scheduler.pt": (scheduler.state_dict(), ("scheduler",), None),
        "plain.pt": (weights, ("raw",), None),
        "ldm.ckpt": (
            {"state_dict": {"model.w": weights["0.weight"], "model_ema.w": weights["0.weight"]}},
            ("raw", "ema"),
            None,
        ),
        "rng_state_0.pth": ({"python": (3, (1, 2)), "numpy": None, "cpu": torch.get_rng_state()}, ("rng",), None),
        "whole_model.pt": ({"model": model, "epoch": 3}, ("raw",), None),
        "mm.pth": ({"meta": {"epoch": 2, "iter": 800}, "state_dict": weights}, ("raw",), 800),
    }
    for name, (state, kinds, step) in cases.items():
        torch.save(state, tmp_path / name)
        _, checkpoint = only(tmp_path / name)
        assert (checkpoint.kinds, checkpoint.step) == (kinds, step), name
    assert listed(only(tmp_path / "whole_model.pt")[1])["model.0.weight"] == ((4, 3), "float32", 48)


def test_every_kind_of_tensor(tmp_path: Path, torch: Any) -> None:
    dtypes = [torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8, torch.bool, torch.complex64]
    tensors = {str(d).removeprefix("torch."): torch.ones(3, 2, dtype=d) for d in dtypes}
    tensors["parameter"] = torch.nn.Parameter(torch.ones(2))
    tensors["view"] = torch.arange(12.0).reshape(3, 4).t()[1:]
    tensors["empty"] = torch.empty(0, 5)
    tensors["meta"] = torch.empty(4, 4, device="meta")
    torch.save(tensors, tmp_path / "t.pt")
    found = listed(only(tmp_path / "t.pt")[1])
    for name, tensor in tensors.items():
        shape, dtype, nbytes = found[name]
        assert shape == tuple(tensor.shape), name
        assert dtype == str(tensor.dtype).removeprefix("torch.")
        assert nbytes == tensor.numel() * tensor.element_size()


def test_tensor_stats_against_torch(tmp_path: Path, torch: Any) -> None:
    torch.manual_seed(1)
    tensors = {
        "f32": torch.randn(1000, 3), "f16": torch.randn(50).half(), "bf16": torch.randn(50).bfloat16(),
        "f64": torch.randn(50).double(), "transposed": torch.randn(40, 30).t(), "slice": torch.randn(40, 30)[3:20, ::2],
        "bad": torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), 0.0, 3.0]),
        "huge": torch.tensor([1e200, 1e200], dtype=torch.float64), "long": torch.ones(3, dtype=torch.int64),
    }  # fmt: skip
    for modern in (True, False):
        path = tmp_path / f"{modern}.pt"
        torch.save(tensors, path, _use_new_zipfile_serialization=modern)
        stats = {s.name: s for s in reader.tensor_stats(path)}
        assert set(stats) == set(tensors) - {"long"}
        for name in set(stats) - {"bad", "huge"}:
            wide = tensors[name].double()
            assert stats[name].norm == pytest.approx(float(wide.norm()), rel=1e-9), name
            assert stats[name].absmax == pytest.approx(float(wide.abs().max()))
            assert stats[name].count == wide.numel()
            assert stats[name].finite
        assert stats["huge"].norm == pytest.approx(2**0.5 * 1e200)  # torch's own norm overflows here
        bad = stats["bad"]
        assert (bad.nan, bad.inf, bad.zeros, bad.finite) == (1, 2, 1, False)
        assert bad.norm == pytest.approx(10**0.5)
        assert [s.name for s in reader.tensor_stats(path, names=["f16"])] == ["f16"]


def test_tensor_stats_of_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    bf16 = np.array([0x3F80, 0x4000, 0x7F80], np.uint16)  # 1, 2, inf
    path.write_bytes(safetensors({"a": np.full(7, 2.0, np.float32), "b": bf16}))
    first, second = reader.tensor_stats(path)
    assert first.norm == pytest.approx(28**0.5)
    assert (second.inf, second.absmax) == (1, 2.0)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_torch_files(tmp_path: Path, torch: Any, data: st.DataObject) -> None:
    buffer = io.BytesIO()
    torch.save({"params": {f"layer{i}.w": torch.ones(3, 3) for i in range(20)}, "iter": 5}, buffer)
    whole = bytearray(buffer.getvalue())
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(0, len(whole))) :]
    for _ in range(data.draw(st.integers(0, 5))):
        if whole:
            whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "net_g_5.pth"
    path.write_bytes(bytes(whole))
    readings_of(path)
    if whole:
        list(reader.tensor_stats(path))


def test_a_file_cut_off_still_lists_its_tensors(tmp_path: Path, torch: Any) -> None:
    path = tmp_path / "net_g_5.pth"
    torch.save({"params": {f"layer{i}.w": torch.ones(100, 100) for i in range(20)}, "iter": 5}, path)
    path.write_bytes(path.read_bytes()[:300_000])
    reading, checkpoint = only(path)
    assert len(checkpoint.tensors) == 20
    assert checkpoint.step == 5
    assert "cannot be loaded" in reading.notes[0].text
