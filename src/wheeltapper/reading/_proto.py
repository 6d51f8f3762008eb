"""The protobuf wire format, as far as a reader needs it: fields with their places, all bounds checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class MalformedError(ValueError):
    """The bytes are not a message. Raised and caught inside the readers only."""


class Field(NamedTuple):
    number: int
    wire: int
    start: int  # of the value's bytes (without the length prefix)
    stop: int
    value: int  # of a varint; 0 otherwise


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The unsigned value at `at` and where it ends."""
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            break
    raise MalformedError("varint runs over")


def signed(value: int) -> int:
    """An int64 from the unsigned number that a varint holds."""
    return value - (1 << 64) if value >> 63 else value


def fields(data: bytes, at: int, end: int) -> Iterator[Field]:
    """Every field of the message in data[at:end]. Raises MalformedError when it is not one.

    >>> [(f.number, f.value) for f in fields(bytes([8, 150, 1]), 0, 3)]
    [(1, 150)]
    """
    while at < end:
        key = data[at]
        if key < 0x80:
            at += 1
        else:
            key, at = varint(data, at, end)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise MalformedError("field number 0")
        if wire == VARINT:
            value, stop = varint(data, at, end)
            yield Field(number, wire, at, stop, value)
        elif wire == BYTES:
            size, at = varint(data, at, end)
            stop = at + size
            if stop > end:
                raise MalformedError("field runs over its message")
            yield Field(number, wire, at, stop, 0)
        elif wire in (FIXED64, FIXED32):
            stop = at + (8 if wire == FIXED64 else 4)
            if stop > end:
                raise MalformedError("number runs over its message")
            yield Field(number, wire, at, stop, 0)
        else:
            raise MalformedError(f"wire type {wire}")
        at = stop
