"""One TensorBoard event, parsed with the places of its numbers.

The places are what makes the fast path possible: records that agree in every byte except those of the
wall time, the step and the values are decoded together as columns (_tfcolumns.py).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from wheeltapper.reading._proto import BYTES, FIXED32, FIXED64, VARINT, Field, MalformedError, fields, signed, varint

# TensorFlow's DataType numbers -> numpy; 14 is bfloat16, which numpy does not have (its bits are read).
DTYPES = {
    1: "<f4", 2: "<f8", 3: "<i4", 4: "<u1", 5: "<i2", 6: "<i1", 9: "<i8", 10: "<u1",
    14: "<u2", 17: "<u2", 19: "<f2", 22: "<u4", 23: "<u8",
}  # fmt: skip
_STRING = 7
_BFLOAT16, _HALF = 14, 19
# Fields of TensorProto that hold the numbers one by one.
_FIXED_VALUES = {5: (FIXED32, 4), 6: (FIXED64, 8)}
_VARINT_VALUES = {7, 10, 11, 13, 16, 17}
_STRING_VALUES = 8
_LEGACY_KINDS = {3: "histogram", 4: "image", 5: "histogram", 6: "audio"}
_EVENT_KINDS = {4: "graph", 6: "log message", 8: "run metadata", 9: "graph"}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number in a record: which tag, where its bytes are and how they are encoded."""

    tag: str
    dtype: int  # TensorFlow DataType
    at: int  # offset in the record
    size: int  # bytes; 0: the number is left out, which means zero
    packed: bool  # True: a varint; False: the raw little-endian bytes


@dataclass(slots=True)
class Parsed:
    wall: int | None = None  # offset of the 8 bytes
    step: tuple[int, int] | None = None  # offset and size of the varint
    scalars: list[Scalar] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # kinds of values that are not scalars
    free: list[tuple[int, int]] = field(default_factory=list)  # bytes of skipped payloads
    texts: list[tuple[str, str]] = field(default_factory=list)
    hparams: list[bytes] = field(default_factory=list)
    version: str | None = None
    writer: str | None = None
    session: tuple[int, str] | None = None  # status, checkpoint path or message

    @property
    def plain(self) -> bool:
        """Nothing in it but numbers and payloads that are not read."""
        return not self.texts and not self.hparams and self.version is None and self.session is None


def parse(data: bytes, plugins: dict[str, str]) -> Parsed:
    """Parse one record. `plugins` collects the plugin of each tag: writers may state it only once."""
    out = Parsed()
    for part in fields(data, 0, len(data)):
        number, wire = part.number, part.wire
        if number == 1 and wire == FIXED64:
            out.wall = part.start
        elif number == 2 and wire == VARINT:
            out.step = (part.start, part.stop - part.start)
        elif number == 5 and wire == BYTES:
            for value in fields(data, part.start, part.stop):
                if value.number == 1 and value.wire == BYTES:
                    _value(data, value, out, plugins)
        elif number == 3 and wire == BYTES:
            out.version = _text(data, part)
        elif number == 7 and wire == BYTES:
            out.session = _session(data, part)
        elif number == 10 and wire == BYTES:
            out.writer = next((_text(data, f) for f in fields(data, part.start, part.stop) if f.number == 1), None)
        elif number in _EVENT_KINDS and wire == BYTES:
            out.skipped.append(_EVENT_KINDS[number])
            out.free.append((part.start, part.stop))
    return out


def _text(data: bytes, part: Field) -> str:
    return data[part.start : part.stop].decode("utf-8", errors="replace")


def _session(data: bytes, part: Field) -> tuple[int, str]:
    status, said = 0, ""
    for item in fields(data, part.start, part.stop):
        if item.number == 1 and item.wire == VARINT:
            status = item.value
        elif item.number in (2, 3) and item.wire == BYTES:
            said = _text(data, item)
    return status, said


def _value(data: bytes, value: Field, out: Parsed, plugins: dict[str, str]) -> None:
    tag = ""
    simple: Field | None = None
    tensor: Field | None = None
    content = b""
    plugin: str | None = None
    for part in fields(data, value.start, value.stop):
        number, wire = part.number, part.wire
        if number == 1 and wire == BYTES:
            tag = _text(data, part)
        elif number == 2 and wire == FIXED32:
            simple = part
        elif number == 8 and wire == BYTES:
            tensor = part
        elif number == 9 and wire == BYTES:
            plugin, content = _metadata(data, part)
        elif number in _LEGACY_KINDS and wire == BYTES:
            out.skipped.append(_LEGACY_KINDS[number])
            out.free.append((part.start, part.stop))
    if content and plugin == "hparams":
        out.hparams.append(content)
    elif simple is not None:
        out.scalars.append(Scalar(tag, 1, simple.start, 4, False))
    elif tensor is not None:
        if plugin:
            plugins.setdefault(tag, plugin)
        _tensor(data, tensor, tag, plugin or "", out)


def _metadata(data: bytes, part: Field) -> tuple[str | None, bytes]:
    """The plugin's name and content. A data class of 1 says "scalar" without naming a plugin."""
    plugin: str | None = None
    content = b""
    for item in fields(data, part.start, part.stop):
        if item.number == 1 and item.wire == BYTES:
            for inner in fields(data, item.start, item.stop):
                if inner.number == 1 and inner.wire == BYTES:
                    plugin = _text(data, inner)
                elif inner.number == 2 and inner.wire == BYTES:
                    content = data[inner.start : inner.stop]
        elif item.number == 4 and item.wire == VARINT and item.value == 1:
            plugin = plugin or "scalars"
    return plugin, content


def _tensor(data: bytes, tensor: Field, tag: str, plugin: str, out: Parsed) -> None:
    dtype = 0
    dims: list[int] = []
    number: tuple[int, int, bool] | None = None
    strings: list[Field] = []
    for part in fields(data, tensor.start, tensor.stop):
        if part.number == 1 and part.wire == VARINT:
            dtype = part.value
        elif part.number == 2 and part.wire == BYTES:
            dims = list(_dims(data, part))
        elif part.number == 4 and part.wire == BYTES and part.stop > part.start:
            number = (part.start, part.stop - part.start, False)
        elif part.number == _STRING_VALUES and part.wire == BYTES:
            strings.append(part)
        elif number is None:
            number = _one_number(data, part)
    if dtype == _STRING and plugin in ("text", ""):
        out.texts += [(tag, _text(data, s)) for s in strings[:1]]
        return
    if dtype not in DTYPES or plugin not in ("scalars", "") or len(dims) > 8 or prod(dims) != 1:
        out.skipped.append(plugin.rstrip("s") or "tensor")
        out.free.append((tensor.start, tensor.stop))
        return
    if number is None:
        number = (tensor.start, 0, False)
    elif not number[2]:
        width = np.dtype(DTYPES[dtype]).itemsize
        if number[1] < width:
            raise MalformedError("tensor shorter than its type")
        number = (number[0], width, False)
    out.scalars.append(Scalar(tag, dtype, *number))


def _dims(data: bytes, shape: Field) -> Iterator[int]:
    for dim in fields(data, shape.start, shape.stop):
        if dim.number == 2 and dim.wire == BYTES:
            yield next((f.value for f in fields(data, dim.start, dim.stop) if f.number == 1), 0)


def _one_number(data: bytes, part: Field) -> tuple[int, int, bool] | None:
    """Place, size and encoding of the first number of a `*_val` field, packed or not."""
    if part.number in _FIXED_VALUES:
        wire, size = _FIXED_VALUES[part.number]
        if part.wire == wire or (part.wire == BYTES and part.stop - part.start >= size):
            return part.start, size, False
    elif part.number in _VARINT_VALUES and part.stop > part.start:
        if part.wire == VARINT:
            return part.start, part.stop - part.start, True
        if part.wire == BYTES:
            _, stop = varint(data, part.start, part.stop)
            return part.start, stop - part.start, True
    return None


def wall_and_step(data: bytes, event: Parsed) -> tuple[float, int]:
    wall = struct.unpack_from("<d", data, event.wall)[0] if event.wall is not None else 0.0
    step = signed(varint(data, event.step[0], len(data))[0]) if event.step is not None else 0
    return wall, step


def number_at(data: bytes, scalar: Scalar) -> float:
    """The value of one scalar, as the column path would give it."""
    if scalar.size == 0:
        return 0.0
    if scalar.packed:
        bits = np.array([signed(varint(data, scalar.at, len(data))[0])], dtype=np.int64)
        return float(from_varints(bits, scalar.dtype)[0])
    raw = np.frombuffer(data, dtype=DTYPES[scalar.dtype], count=1, offset=scalar.at)
    return float(from_raw(raw, scalar.dtype)[0])


def from_raw(column: NDArray[np.generic], dtype: int) -> NDArray[np.generic]:
    """Numbers from their raw bytes; float32 stays float32 until the series is put together."""
    if dtype == _BFLOAT16:
        return (column.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return column if column.dtype == np.float32 else column.astype(np.float64)


def from_varints(bits: NDArray[np.int64], dtype: int) -> NDArray[np.generic]:
    """Numbers from varints: integers as they are, halves as bit patterns."""
    if dtype == _HALF:
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    if dtype == _BFLOAT16:
        return (bits.astype(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype == 23:
        return bits.view(np.uint64).astype(np.float64)
    return bits.astype(np.float64)
