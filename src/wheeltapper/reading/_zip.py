"""The directory of a zip file, read with bounds on entries and sizes, nothing unpacked.

Own code because the standard library loads a directory of any size before one can look at it, and because
a file cut off while being written (no directory at all) still has its first entries.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from wheeltapper.reading._file_bytes import Data

MAX_ENTRIES = 200_000
_END = b"PK\x05\x06"
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    start: int  # of the data
    stored: int  # bytes in the file
    size: int  # bytes declared
    method: int  # 0: stored as is; 8: deflated


def entries(data: Data) -> dict[str, Entry] | None:
    """All entries by name; None where the directory is missing or makes no sense."""
    end = data.rfind(_END, max(0, len(data) - 65_557))
    if end < 0 or end + 22 > len(data):
        return None
    count, size, offset = struct.unpack("<HII", data[end + 10 : end + 20])
    if count == 0xFFFF or offset == 0xFFFFFFFF or size == 0xFFFFFFFF:
        if end < 20 or data[end - 20 : end - 16] != b"PK\x06\x07":
            return None
        there = int.from_bytes(data[end - 12 : end - 4], "little")
        if there + 56 > len(data) or data[there : there + 4] != b"PK\x06\x06":
            return None
        count, size, offset = struct.unpack("<QQQ", data[there + 32 : there + 56])
    if offset + size > len(data) or count > MAX_ENTRIES:
        return None
    found: dict[str, Entry] = {}
    at = offset
    for _ in range(count):
        if at + _CENTRAL.size > len(data):
            return None
        head = _CENTRAL.unpack(data[at : at + _CENTRAL.size])
        if head[0] != b"PK\x01\x02":
            return None
        method, stored, whole, n_name, n_extra, n_comment, local = head[4], *head[8:13], head[16]
        at += _CENTRAL.size
        name = data[at : at + n_name].decode("utf-8", errors="replace")
        stored, whole, local = _wide(data[at + n_name : at + n_name + n_extra], stored, whole, local)
        at += n_name + n_extra + n_comment
        start = _data_start(data, local)
        if start is not None and start + stored <= len(data):
            found[name] = Entry(name, start, stored, whole, method)
    return found


def _wide(extra: bytes, stored: int, whole: int, local: int) -> tuple[int, int, int]:
    """Zip64: numbers too large for 32 bits are in the extra field, in this order."""
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            numbers = list(struct.unpack_from(f"<{min(size, len(extra) - at - 4) // 8}Q", extra, at + 4))
            if whole == 0xFFFFFFFF and numbers:
                whole = numbers.pop(0)
            if stored == 0xFFFFFFFF and numbers:
                stored = numbers.pop(0)
            if local == 0xFFFFFFFF and numbers:
                local = numbers.pop(0)
        at += 4 + size
    return stored, whole, local


def _data_start(data: Data, local: int) -> int | None:
    if local + _LOCAL.size > len(data):
        return None
    head = _LOCAL.unpack(data[local : local + _LOCAL.size])
    return local + _LOCAL.size + int(head[9]) + int(head[10]) if head[0] == b"PK\x03\x04" else None


def first_entry(data: Data) -> tuple[str, int] | None:
    """Name and data start of the first entry, for a file whose directory is missing."""
    start = _data_start(data, 0) if len(data) > _LOCAL.size else None
    if start is None or start >= len(data):
        return None
    length = int.from_bytes(data[26:28], "little")
    return data[_LOCAL.size : _LOCAL.size + length].decode("utf-8", errors="replace"), start


def unpacked(data: Data, entry: Entry, limit: int) -> bytes | None:
    """The content of an entry, at most `limit` bytes of it; None where it cannot be had."""
    if entry.method == 0:
        return bytes(data[entry.start : entry.start + min(entry.stored, limit)])
    if entry.method != 8:
        return None
    try:
        return zlib.decompressobj(-15).decompress(data[entry.start : entry.start + min(entry.stored, limit)], limit)
    except zlib.error:
        return None
