"""A tiny TensorBoard writer for tests and benchmarks: event files as bytes, no TensorBoard needed."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from wheeltapper.reading._crc32c import crc32c, masked

try:  # writing a million records for the benchmarks
    import google_crc32c
except ImportError:
    google_crc32c = None


def checksum(data: bytes) -> int:
    return masked(google_crc32c.value(data) if google_crc32c is not None else crc32c(data))


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", checksum(length)) + data + struct.pack("<I", checksum(data))


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def packed(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def metadata(plugin: str, content: bytes = b"") -> bytes:
    return packed(9, packed(1, packed(1, plugin.encode()) + (packed(2, content) if content else b"")))


def scalar(tag: str, value: float) -> bytes:
    """One summary value as torch's SummaryWriter writes it."""
    return packed(1, packed(1, tag.encode()) + b"\x15" + struct.pack("<f", value))


def tensor(tag: str, dtype: int, body: bytes, plugin: str = "scalars", shape: Iterable[int] = ()) -> bytes:
    """One summary value as TensorFlow 2 writes it; `body` is the field that holds the number."""
    dims = b"".join(packed(2, b"\x08" + varint(n)) for n in shape)
    proto = b"\x08" + varint(dtype) + packed(2, dims) + body
    return packed(1, packed(1, tag.encode()) + packed(8, proto) + (metadata(plugin) if plugin else b""))


def tensor_scalar(tag: str, value: float) -> bytes:
    return tensor(tag, 1, packed(4, struct.pack("<f", value)))


def histogram(tag: str, buckets: Iterable[float]) -> bytes:
    numbers = list(buckets)
    payload = struct.pack(f"<{len(numbers)}d", *numbers)
    histo = b"\x09" + struct.pack("<d", 0.0) + packed(6, payload) + packed(7, payload)
    return packed(1, packed(1, tag.encode()) + packed(5, histo))


def image(tag: str, pixels: bytes) -> bytes:
    return packed(1, packed(1, tag.encode()) + packed(4, b"\x08\x10\x10\x10\x18\x03" + packed(4, pixels)))


def text(tag: str, said: str) -> bytes:
    return tensor(f"{tag}/text_summary", 7, packed(8, said.encode()), plugin="text", shape=(1,))


def hparams(settings: Mapping[str, object]) -> bytes:
    entries = b""
    for key, value in settings.items():
        if isinstance(value, bool):
            encoded = b"\x20" + bytes([value])
        elif isinstance(value, int | float):
            encoded = b"\x11" + struct.pack("<d", value)
        else:
            encoded = packed(3, str(value).encode())
        entries += packed(1, packed(1, key.encode()) + packed(2, encoded))
    content = packed(3, entries)
    return packed(1, packed(1, b"_hparams_/session_start_info") + metadata("hparams", content))


def event(wall: float, step: int, *values: bytes) -> bytes:
    """A whole record with one summary. Step 0 is left out, as protobuf does."""
    at = b"\x10" + varint(step) if step else b""
    return record(b"\x09" + struct.pack("<d", wall) + at + packed(5, b"".join(values)))


def version(wall: float) -> bytes:
    return record(b"\x09" + struct.pack("<d", wall) + packed(3, b"brain.Event:2"))


def session(wall: float, step: int, status: int) -> bytes:
    at = b"\x10" + varint(step) if step else b""
    return record(b"\x09" + struct.pack("<d", wall) + at + packed(7, b"\x08" + varint(status)))
