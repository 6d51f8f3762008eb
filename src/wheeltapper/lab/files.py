"""The files a training leaves that are not text: TensorBoard events, W&B logs and safetensors, by hand.

Each format is a page of rules, and writing them here keeps the lab free of three more packages.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from wheeltapper.reading._crc32c import crc32c, masked


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, data: bytes) -> bytes:
    """A length-delimited protobuf field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


class EventFile:
    """Scalars in a TensorBoard event file."""

    def __init__(self, folder: Path, wall_time: float, host: str = "lab") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"events.out.tfevents.{int(wall_time)}.{host}.1.0"
        self._write(struct.pack("<Bd", 9, wall_time) + field(3, b"brain.Event:2"))

    def _write(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        with self.path.open("ab") as file:
            file.write(
                length + struct.pack("<I", masked(crc32c(length))) + event + struct.pack("<I", masked(crc32c(event)))
            )

    def scalars(self, step: int, wall_time: float, values: Mapping[str, float]) -> None:
        for tag, value in values.items():
            summary = field(1, field(1, tag.encode()) + struct.pack("<Bf", 0x15, value))
            self._write(struct.pack("<Bd", 9, wall_time) + b"\x10" + varint(step) + field(5, summary))


class WandbFile:
    """A W&B offline run: LevelDB's log of protobuf records (run, history, exit)."""

    BLOCK = 32768

    def __init__(self, folder: Path, run_id: str, project: str, config: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"run-{run_id}.wandb"
        self.path.write_bytes(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
        updates = b"".join(field(1, self._item(key, value)) for key, value in config.items())
        self._write(field(17, field(1, run_id.encode()) + field(3, project.encode()) + field(4, updates)))

    @staticmethod
    def _item(key: str, value: Any) -> bytes:
        return field(1, key.encode()) + field(16, json.dumps(value).encode())

    def _write(self, record: bytes) -> None:
        with self.path.open("ab") as file:
            first = True
            while True:
                room = self.BLOCK - file.tell() % self.BLOCK
                if room < 7:
                    file.write(b"\0" * room)
                    room = self.BLOCK
                part, record = record[: room - 7], record[room - 7 :]
                kind = (1 if not record else 2) if first else (4 if not record else 3)
                check = zlib.crc32(part, zlib.crc32(bytes([kind])))
                file.write(struct.pack("<IHB", check, len(part), kind) + part)
                first = False
                if not record:
                    return

    def log(self, step: int, values: Mapping[str, Any]) -> None:
        row = {**values, "_step": step}
        items = b"".join(field(1, self._item(key, value)) for key, value in row.items())
        self._write(field(2, items))

    def finish(self, code: int) -> None:
        self._write(field(18, b"\x08" + varint(code)))


def save_safetensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Float tensors only: an 8-byte length, a JSON header, the raw values."""
    header, chunks, offset = {}, [], 0
    for name, tensor in tensors.items():
        data = tensor.detach().cpu().float().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + len(data)]}
        chunks.append(data)
        offset += len(data)
    head = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(chunks))


def resident_gb(device: torch.device) -> float:
    """The memory a training would print: the device's peak, or what this process holds now."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device)) / 2**30
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * 4096 / 2**30
