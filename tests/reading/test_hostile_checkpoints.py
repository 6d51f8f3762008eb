"""Checkpoints that change while they are read, and small ones that are large to read carelessly."""

from __future__ import annotations

import io
import pickle
import struct
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from wheeltapper.reading import readings_of
from wheeltapper.reading._file_bytes import FileBytes, FileChangedError
from wheeltapper.reading._tensor_starts import tensor_starts

PROTO = b"\x80\x02"
# (x, x) forty times over: a terabyte, if it is ever written out
DOUBLED = (
    PROTO
    + b"X\x01\x00\x00\x00aq\x000"
    + b"".join(b"h%ch%c\x86q%c0" % (i, i, i + 1) for i in range(40))
)
LAST = b"h\x28"
SECONDS = 10  # CPU time; each takes less than two
MEMORY = 1e9  # bytes: the bound that any input must keep; how much is read until the clock stops it depends on the machine


def checkpoint(size: int = 200_000) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("net/data.pkl", pickle.dumps({"step": 5, "args": {"lr": 0.1}}, 2))
        file.writestr("net/data/0", bytes(size))
    return archive.getvalue()


def safetensors() -> bytes:
    header = b'{"a":{"dtype":"F32","shape":[1000],"data_offsets":[0,4000]}}'
    return struct.pack("<Q", len(header)) + header + bytes(4000)


SHRINKS = """
import os, sys
from pathlib import Path
from wheeltapper.reading import _checkpoint_open, readings_of
entries = _checkpoint_open._zip.entries
def later(data):
    os.truncate(sys.argv[1], 10)
    return entries(data)
_checkpoint_open._zip.entries = later
(reading,) = readings_of(Path(sys.argv[1]))
print(reading.notes[0].text)
"""


def test_a_checkpoint_that_shrinks_while_it_is_read_ends_nothing(tmp_path: Path) -> None:
    """A mapped file that shrinks kills the process by SIGBUS; it was 12 of 20 beside a training that saves."""
    file = tmp_path / "net_5.pth"
    file.write_bytes(checkpoint())
    done = subprocess.run([sys.executable, "-c", SHRINKS, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stdout.strip()


def test_a_checkpoint_that_is_always_being_written_is_told_by_name_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(self: FileBytes) -> None:
        raise FileChangedError("it was written while it was read")

    file = tmp_path / "net_5.pth"
    file.write_bytes(checkpoint())
    monkeypatch.setattr(FileBytes, "check_unchanged", changed)
    (reading,) = readings_of(file)
    assert "written while it was read" in reading.notes[0].text
    assert reading.checkpoints[0].step == 5  # by its name


def test_beside_a_training_that_saves(tmp_path: Path) -> None:
    file, stop = tmp_path / "net_5.pth", threading.Event()
    file.write_bytes(checkpoint())

    def save() -> None:
        size = 0
        while not stop.is_set():
            size = (size + 70_001) % 400_000
            file.write_bytes(checkpoint(size))

    writer = threading.Thread(target=save)
    writer.start()
    try:
        for _ in range(60):
            assert readings_of(file)[0].file == str(file)
    finally:
        stop.set()
        writer.join()


def test_tensors_of_a_file_that_changed_are_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(safetensors())
    assert tensor_starts(file, ["a"], 8)["a"].bits.tolist() == [0.0] * 8
    read = FileBytes._read

    def slowly(self: FileBytes, start: int, stop: int) -> bytes:
        piece = read(self, start, stop)
        file.write_bytes(safetensors() + b"x")
        return piece

    monkeypatch.setattr(FileBytes, "_read", slowly)
    with pytest.raises(OSError, match="written"):
        tensor_starts(file, ["a"], 8)


def test_the_bytes_of_a_file_answer_as_bytes_do(tmp_path: Path) -> None:
    data = bytes(range(256)) * 2000
    file = tmp_path / "x"
    file.write_bytes(data)
    with FileBytes(file) as lazy:
        for piece in (slice(0, 10), slice(5, 300_000), slice(-30, None), slice(9, 3), slice(511_990, 600_000)):
            assert lazy[piece] == data[piece]
        assert [lazy[i] for i in (0, 300, 511_999, 70_000)] == [data[i] for i in (0, 300, 511_999, 70_000)]
        assert lazy.find(b"\x05\x06", 10, 500_000) == data.find(b"\x05\x06", 10, 500_000)
        assert lazy.find(b"\x05\x07", 0, len(data)) == -1
        assert lazy.rfind(b"\xfe\xff", 100) == data.rfind(b"\xfe\xff", 100)


def shared_parts() -> bytes:
    big = {f"k{i}": i for i in range(40_000)}
    return pickle.dumps({f"p{i}": big for i in range(40_000)}, 2)


def keys_that_are_no_names() -> bytes:
    odd = PROTO + b"}q\x00(" + b"(K\x01tN" * 60_000 + b"u0"
    return odd + b"}(" + b"".join(b"X\x05\x00\x00\x00%05dh\x00" % i for i in range(60_000)) + b"u."


def modules_that_share_theirs() -> bytes:
    out = PROTO + b"}q\x00(" + b"".join(b"X\x05\x00\x00\x00%05dN" % i for i in range(40_000)) + b"u0}("
    one = b"X\x05\x00\x00\x00%05dcfoo\nbar\n)R}(X\x08\x00\x00\x00_modulesh\x00X\x0b\x00\x00\x00_parametersNub"
    return out + b"".join(one % i for i in range(20_000)) + b"u."


REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
HOSTILE: dict[str, Callable[[], bytes]] = {
    "a path without end": lambda: DOUBLED + b"}X\x04\x00\x00\x00pathcpathlib\nPosixPath\n" + LAST + b"\x85Rs.",
    "a storage key without end": lambda: DOUBLED + b"}X\x01\x00\x00\x00w" + REBUILD + LAST + b"tQK\x00)))tRs.",
    "settings without end": lambda: DOUBLED + b"}X\x06\x00\x00\x00config" + LAST + b"s.",
    "one dict as every part": shared_parts,
    "keys that are no names": keys_that_are_no_names,
    "modules that share theirs": modules_that_share_theirs,
    "marks": lambda: PROTO + b"(" * 3_000_000,
    "dicts": lambda: PROTO + b"}" * 3_000_000,
    "calls": lambda: PROTO + b"cfoo\nbar\nq\x000" + b"h\x00)R" * 1_000_000 + b".",
    "long text": lambda: PROTO + b"X" + struct.pack("<I", 60_000_000) + "é".encode() + b"a" * 59_999_998 + b".",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_small_pickle_costs_little(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "x.pt"
    file.write_bytes(HOSTILE[kind]())
    begun = time.process_time()
    readings = readings_of(file)
    assert time.process_time() - begun < SECONDS
    assert readings


PEAK = """
import resource, sys
from pathlib import Path
from wheeltapper.reading import readings_of
for file in sys.argv[1:]:
    readings_of(Path(file))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_the_memory_of_hostile_checkpoints_is_bounded(tmp_path: Path) -> None:
    files = []
    for i, kind in enumerate(("modules that share theirs", "dicts", "calls")):
        files.append(str(tmp_path / f"{i}.pt"))
        Path(files[-1]).write_bytes(HOSTILE[kind]())
    done = subprocess.run([sys.executable, "-c", PEAK, *files], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < MEMORY


def test_an_archive_of_many_curves_holds_no_more_values_than_one(tmp_path: Path) -> None:
    """10 MB that unpack to 11.5 GB."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000,), }".ljust(117) + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(8_000_000)
    file = tmp_path / "losses.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for i in range(12):
            archive.writestr(f"loss_{i}.npy", array)
    (reading,) = readings_of(file)
    assert sum(len(p.values) for p in reading.points) == 5_000_000
    assert sum("data, not a curve" in note.text for note in reading.notes) == 7
