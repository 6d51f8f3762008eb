"""Writes the W&B transaction log for tests: LevelDB's log framing around hand-made protobuf records."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

BLOCK = 32768


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def sub(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def item(key: str | list[str], value: Any) -> bytes:
    name = sub(1, key.encode()) if isinstance(key, str) else b"".join(sub(2, part.encode()) for part in key)
    return name + sub(16, json.dumps(value).encode())


def history(row: list[tuple[str | list[str], Any]]) -> bytes:
    return sub(2, b"".join(sub(1, item(key, value)) for key, value in row))


def run(run_id: str, config: dict[str, Any]) -> bytes:
    told = sub(4, b"".join(sub(1, item(key, value)) for key, value in config.items()))
    return sub(17, sub(1, run_id.encode()) + sub(3, b"demo") + told + sub(8, b"red-fox-1"))


def log(records: list[bytes]) -> bytes:
    out = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for record in records:
        rest, first = record, True
        while True:
            room = BLOCK - len(out) % BLOCK
            if room < 7:
                out += bytes(room)
                room = BLOCK
            part, rest = rest[: room - 7], rest[room - 7 :]
            kind = (1 if first else 4) if not rest else (2 if first else 3)
            out += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind) + part
            first = False
            if not rest:
                break
    return bytes(out)
