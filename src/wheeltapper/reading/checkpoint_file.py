"""Checkpoints (safetensors, torch zip files, older torch pickles), listed without torch and without running
anything in them.

Every tensor with its shape, type and size; step and epoch; which parts of the training state are there; the
plain numbers and settings stored beside them. `tensor_stats` reads the numbers themselves, on request.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading import _checkpoint_name as names
from wheeltapper.reading._checkpoint_content import Content
from wheeltapper.reading._checkpoint_open import LEGACY_MAGIC, Opened, open_content
from wheeltapper.reading._file_bytes import FileBytes, FileChangedError
from wheeltapper.reading._tensor_starts import TensorStart, tensor_starts
from wheeltapper.reading._tensor_stats import TensorStats, tensor_stats
from wheeltapper.reading.record import Checkpoint, Note, Reading, Tensor

__all__ = ["FORMAT", "TensorStart", "TensorStats", "read", "sniff", "tensor_starts", "tensor_stats"]

FORMAT = "checkpoint (safetensors, torch)"
MAX_TENSORS = 200_000
_SURE_SUFFIXES = (".safetensors", ".pt", ".pth", ".pth.tar", ".ckpt", ".state")
_PICKLE_SUFFIXES = (*_SURE_SUFFIXES, ".bin", ".pkl")


def sniff(head: Head) -> float:
    data, name = head.data, head.name.lower()
    if data.startswith(b"PK\x03\x04") and b"/data.pkl" in data[:600]:
        return 0.95
    if data.startswith(LEGACY_MAGIC):
        return 0.95
    if name.endswith(".safetensors"):
        return 0.9
    if data[:1] == b"\x80" and data[1:2] in b"\x02\x03\x04\x05" and name.endswith(_PICKLE_SUFFIXES):
        return 0.6
    if len(data) > 16 and data[8:10] == b'{"' and 8 + int.from_bytes(data[:8], "little") <= head.size:
        return 0.8
    # A file of that name that is something else is still worth a word: a checkpoint that cannot be loaded.
    return 0.25 if name.endswith(_SURE_SUFFIXES) and (head.looks_binary or not data) else 0.0


def glance(path: Path) -> list[Reading]:
    """What its name and size tell, for a file that is not worth opening at every look: a run that goes on writes it anew."""
    step, epoch = names.position(path)
    kinds = tuple(kind for kind in _ORDER if kind in names.kinds(path))
    found = Checkpoint(str(path), step, epoch, kinds, path.stat().st_size, metric=names.score(path))
    return [Reading(str(path), FORMAT, checkpoints=(found,))]


def read(path: Path) -> list[Reading]:
    file = str(path)
    try:
        found, size = _open(path)
    except FileChangedError as error:
        note = Note(f"{error}: only its name and size are known", file, level="lost")
        return [replace(told, notes=(note,)) for told in glance(path)]
    except (OSError, ValueError) as error:
        return [Reading(file, FORMAT, notes=(Note(f"cannot be read: {error}", file, level="lost"),))]
    content = found.content
    step, epoch = names.position(path)
    kinds = content.kinds | names.kinds(path)
    if "ema" in names.kinds(path) and "ema" not in content.kinds:
        kinds.discard("raw")  # the whole file is the average
    tensors = [Tensor(name, t.shape, t.dtype, t.nbytes) for name, t in content.tensors[:MAX_TENSORS]]
    notes = [Note(text, file, level="lost") for text in found.problems]
    notes += [Note(text, file) for text in found.remarks]
    if len(content.tensors) > MAX_TENSORS:
        notes.append(Note(f"{len(content.tensors) - MAX_TENSORS:,} more tensors are not listed", file, level="lost"))
    checkpoint = Checkpoint(
        path=file,
        step=content.step if content.step is not None else step,
        epoch=content.epoch if content.epoch is not None else epoch,
        kinds=tuple(kind for kind in _ORDER if kind in kinds),
        size=size,
        exists=True,
        tensors=tuple(tensors),
        keys=content.keys,
        metric=content.metric or names.score(path),
        note="; ".join(found.problems) or None,
        values=content.values,
    )
    return [Reading(file, found.format, configs=tuple(content.configs), checkpoints=(checkpoint,), notes=tuple(notes))]


def _open(path: Path) -> tuple[Opened, int]:
    """The content, from a file that nobody wrote to meanwhile."""
    for look in range(_LOOKS):
        try:
            with FileBytes(path) as data:
                if not len(data):
                    return Opened("torch checkpoint", Content(), problems=["the file is empty"]), 0
                found = open_content(data, str(path))
                data.check_unchanged()
                return found, len(data)
        except FileChangedError:
            if look == _LOOKS - 1:
                raise
    raise AssertionError


_LOOKS = 3  # a checkpoint that is being written; a fourth look would find it no more at rest
_ORDER = ("raw", "ema", "optimizer", "scheduler", "scaler", "rng", "config")
