"""Opens a checkpoint of any known container and finds where each tensor's numbers lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from wheeltapper.reading import _zip
from wheeltapper.reading._checkpoint_content import Content, content_of, note_optimizer_step
from wheeltapper.reading._file_bytes import Data
from wheeltapper.reading._pickle import Blob, Loaded, load, runs_code
from wheeltapper.reading._torch_objects import DTYPES, Storage, TensorRef
from wheeltapper.settings.position import word_value
from wheeltapper.settings.tree import ConfigTree, Leaf

LEGACY_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_MAX_UNPACKED = 64 << 20  # bytes of a compressed data.pkl; torch itself does not compress
MAX_PICKLE = 256 << 20  # bytes of a data.pkl; that of a model of 100,000 tensors is 30 MB
_MAX_HEADER = 24 << 20  # the specification allows 100 MB; 200,000 tensors take 24, and decoded it takes thirty times as much
_MAX_LEAVES = 2000


@dataclass(slots=True)
class Opened:
    format: str
    content: Content
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)  # storage key -> where, bytes

    def place_of(self, tensor: TensorRef) -> tuple[int, int] | None:
        """Offset and size in the file of the storage a tensor looks into."""
        if isinstance(tensor.storage, Blob):
            return tensor.storage.at, tensor.storage.size
        return self.places.get(tensor.storage.key) if isinstance(tensor.storage, Storage) else None


def open_content(data: Data, file: str) -> Opened:
    if data[:4] == b"PK\x03\x04":
        return _torch_zip(data, file)
    if data[: len(LEGACY_MAGIC)] == LEGACY_MAGIC:
        return _legacy(data, file)
    if data[:1] == b"\x80":
        return _opened("pickle", load(data, 0, len(data)), file)
    return _safetensors(data, file)


def _opened(format_: str, loaded: Loaded, file: str) -> Opened:
    """The content of one pickle, with what went wrong in it and what it would do if it were loaded."""
    out = Opened(format_, content_of(loaded.value, file))
    if loaded.problem:
        out.problems.append(f"its pickle: {loaded.problem}")
    if out.content.budget.left <= 0:
        out.problems.append("it holds more values than are looked at; the list is not whole")
    risky = sorted({str(name) for name in loaded.names if runs_code(name)})
    if risky:
        out.remarks.append(f"loading this file would run code ({', '.join(risky[:5])}): it was not loaded, only read")
    return out


def _torch_zip(data: Data, file: str) -> Opened:
    entries = _zip.entries(data)
    if entries is None:
        return _cut_off_zip(data, file)
    pickles = [entry for name, entry in entries.items() if name.endswith("/data.pkl") or name == "data.pkl"]
    if not pickles:
        return Opened("zip file", Content(), problems=["a zip file without a torch checkpoint in it"])
    entry = pickles[0]
    root_name = entry.name.removesuffix("data.pkl")
    inside = data
    start, stop = entry.start, entry.start + entry.stored
    if entry.method != 0:
        unpacked = _zip.unpacked(data, entry, _MAX_UNPACKED)
        if unpacked is None:
            return Opened("torch checkpoint", Content(), problems=["its data.pkl cannot be unpacked"])
        inside, start, stop = unpacked, 0, len(unpacked)
    loaded = load(inside, start, min(stop, start + MAX_PICKLE))
    out = _opened("torch checkpoint", loaded, file)
    for name, found in entries.items():
        if name.startswith(root_name + "data/") and found.method == 0:
            out.places[name[len(root_name) + 5 :]] = (found.start, found.stored)
    if any(name.startswith(root_name + "code/") for name in entries):
        out.remarks.append("a TorchScript module: it holds code, which is not read")
    order = entries.get(root_name + "byteorder")
    if order is not None and _zip.unpacked(data, order, 16) == b"big":
        out.remarks.append("stored big-endian: tensors are listed, their numbers cannot be read")
        out.places.clear()
    _missing(out)
    _small_tensors(out, data)
    return out


def _cut_off_zip(data: Data, file: str) -> Opened:
    """Torch writes the pickle first and the directory last, so a file cut off still tells what it was."""
    problem = "the file is cut off or damaged (its zip directory is missing): it cannot be loaded"
    first = _zip.first_entry(data)
    if first is None or not first[0].endswith("data.pkl"):
        return Opened("torch checkpoint", Content(), problems=[problem])
    out = _opened("torch checkpoint", load(data, first[1], min(len(data), first[1] + MAX_PICKLE)), file)
    out.problems.insert(0, problem)
    return out


def _missing(out: Opened) -> None:
    keys = {t.storage.key for _, t in out.content.tensors if isinstance(t.storage, Storage)}
    gone = keys - out.places.keys()
    if gone and out.places:
        out.problems.append(f"{len(gone):,} of {len(keys):,} tensor storages are missing or cut off")


def _legacy(data: Data, file: str) -> Opened:
    """Before torch 1.6: five pickles (magic, protocol, system, object, storage keys), then the storages."""
    at = len(LEGACY_MAGIC)
    parts: list[Loaded] = []
    while len(parts) < 4 and (not parts or parts[-1].problem is None):
        parts.append(load(data, at, len(data)))
        at = parts[-1].end
    whole = len(parts) == 4
    out = _opened("torch checkpoint", parts[2] if len(parts) > 2 else parts[-1], file)
    keys = parts[3].value if whole else []
    out.remarks.append("in the format of torch before 1.6")
    sizes = {t.storage.key: t.storage.itemsize for _, t in out.content.tensors if isinstance(t.storage, Storage)}
    for key in keys if isinstance(keys, list) else ():
        if key not in sizes or at + 8 > len(data):
            break
        nbytes = int.from_bytes(data[at : at + 8], "little") * sizes[key]
        at += 8
        if at + nbytes > len(data):
            break
        out.places[key] = (at, nbytes)
        at += nbytes
    _missing(out)
    _small_tensors(out, data)
    return out


def _small_tensors(out: Opened, data: Data) -> None:
    """Counters are often stored as tensors of one number (Adam's step, a scaler's scale): read those."""
    content = out.content
    for name, tensor in content.tensors:
        last = name.rpartition(".")[2]
        if tensor.numel != 1 or tensor.dtype not in _NUMPY or not (last in _COUNTERS or "." not in name):
            continue
        place = out.place_of(tensor)
        start = tensor.offset * tensor.itemsize
        if place is None or start + tensor.itemsize > place[1] or len(content.values) >= 1000:
            continue
        raw = data[place[0] + start : place[0] + start + tensor.itemsize]
        number = np.frombuffer(raw, dtype=tensor.dtype)[0].item()
        if last == "step" and (".state." in name or name.startswith("state.")):
            note_optimizer_step(name, number, content)
            continue
        content.values[name] = number
        if name in ("step", "global_step", "iter") and content.step is None:
            content.step = float(number)
        if name == "epoch" and content.epoch is None:
            content.epoch = float(number)


_COUNTERS = {"step", "scale", "_scale", "global_step", "epoch", "best_model_score"}
_NUMPY = {"float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"}


def _safetensors(data: Data, file: str) -> Opened:
    out = Opened("safetensors", Content())
    length = int.from_bytes(data[:8], "little")
    if len(data) < 10 or length > min(_MAX_HEADER, len(data) - 8):
        text = "not a checkpoint of a known format, or cut off within its header"
        out.format = "safetensors" if file.endswith(".safetensors") else "torch checkpoint"
        out.problems.append(text)
        return out
    try:
        header = msgspec.json.decode(data[8 : 8 + length], type=dict[str, dict[str, Any]])
    except (msgspec.DecodeError, RecursionError) as error:
        out.problems.append(f"its header cannot be read ({error}), so its tensors are not known")
        return out
    metadata = header.pop("__metadata__", {})
    base, wrong, cut = 8 + length, 0, 0
    for name, entry in header.items():
        tensor = _entry(name, entry)
        if tensor is None:
            wrong += 1
            continue
        start, stop = entry["data_offsets"]
        out.content.tensors.append((name, tensor))
        if base + stop > len(data):
            cut += 1
        else:
            out.places[name] = (base + start, stop - start)
    if wrong:
        out.problems.append(f"{wrong:,} entries of its header make no sense")
    if cut:
        out.problems.append(f"the file is cut off: {cut:,} of {len(header):,} tensors are not whole")
    out.content.keys = tuple(list(header)[:1000])
    if out.content.tensors:
        averaged = [name for name, _ in out.content.tensors if name.startswith(("ema.", "ema_", "model_ema."))]
        out.content.kinds |= {"ema"} if averaged else set()
        out.content.kinds |= {"raw"} if len(averaged) < len(out.content.tensors) else set()
    _metadata(metadata, out.content, file)
    return out


def _entry(name: str, entry: Mapping[str, Any]) -> TensorRef | None:
    dtype = DTYPES.get(str(entry.get("dtype")))
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2 or len(shape) > 64:
        return None
    if not all(isinstance(n, int) and 0 <= n < 1 << 48 for n in (*shape, *offsets)):
        return None
    name_of, itemsize = dtype or (str(entry.get("dtype"))[:40], 0)
    size = offsets[1] - offsets[0]
    if size < 0 or (itemsize and math.prod(shape) * itemsize != size):
        return None
    return TensorRef(name_of, itemsize, tuple(shape), None, 0, Storage(name, name_of, itemsize))


def _metadata(metadata: Mapping[str, Any], content: Content, file: str) -> None:
    """The text fields of a safetensors file; kohya's trainers keep their settings there as ss_*."""
    leaves: list[Leaf] = []
    for key, text in list(metadata.items())[:_MAX_LEAVES]:
        if not isinstance(text, str) or len(text) > 2000:
            continue
        value = None if text == "None" else word_value(text)
        content.values[key] = value
        leaves.append(Leaf((key,), value, text, file, 1))
    if any(leaf.path[0] != "format" for leaf in leaves):
        content.configs.append(ConfigTree(file, "state", tuple(leaves), kind="metadata"))
        content.kinds.add("config")
    step, epoch = content.values.get("ss_steps"), content.values.get("ss_epoch")
    content.step = float(step) if isinstance(step, int | float) else None
    content.epoch = float(epoch) if isinstance(epoch, int | float) else None
