"""CRC-32C, the checksum of TFRecord files, for single byte strings and for columns of equal records.

For messages of one length the checksum is linear in every byte: the checksum of the constant part, xored
with one table entry per varying byte. That makes checking a million records a few table look-ups each.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Words32 = NDArray[np.uint32]

_POLYNOMIAL = np.uint32(0x82F63B78)  # Castagnoli, bits reversed
_MASK_DELTA = 0xA282EAD8  # TFRecord stores rotated checksums plus this


def _first_table() -> Words32:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ _POLYNOMIAL, table >> 1).astype(np.uint32)
    return table


TABLE = _first_table()
_ENTRIES: list[int] = TABLE.tolist()


def crc32c(data: bytes) -> int:
    """
    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    entries = _ENTRIES
    for byte in data:
        crc = entries[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """The form in which TFRecord files store a checksum."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def masked_column(crc: Words32) -> Words32:
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(_MASK_DELTA)


@cache
def _zeros_operator(power: int) -> tuple[Words32, Words32, Words32, Words32]:
    """Tables that push a checksum through 2**power zero bytes."""
    if power == 0:
        low = np.arange(256, dtype=np.uint32)
        return TABLE, low, low << np.uint32(8), low << np.uint32(16)
    half = _zeros_operator(power - 1)
    return (
        _push(half[0], half),
        _push(half[1], half),
        _push(half[2], half),
        _push(half[3], half),
    )


def _push(crc: Words32, operator: tuple[Words32, Words32, Words32, Words32]) -> Words32:
    pushed: Words32 = (
        operator[0][crc & 0xFF]
        ^ operator[1][(crc >> np.uint32(8)) & 0xFF]
        ^ operator[2][(crc >> np.uint32(16)) & 0xFF]
        ^ operator[3][crc >> np.uint32(24)]
    )
    return pushed


@cache
def byte_table(distance: int) -> Words32:
    """What each value of a byte adds to the checksum when `distance` bytes follow it."""
    table = TABLE
    power = 0
    while distance:
        if distance & 1:
            table = _push(table, _zeros_operator(power))
        distance >>= 1
        power += 1
    table.flags.writeable = False
    return table


_LENGTH_TABLES = tuple(byte_table(7 - place) for place in range(8))
_LENGTH_ZERO = np.uint32(crc32c(bytes(8)))


def length_crcs(lengths: NDArray[np.uint64]) -> Words32:
    """Masked checksums of a column of little-endian 64-bit lengths."""
    places = np.ascontiguousarray(lengths, dtype="<u8").view(np.uint8).reshape(-1, 8)
    crc = np.full(len(places), _LENGTH_ZERO, dtype=np.uint32)
    high = int(lengths.max()) if len(lengths) else 0
    for place in range(8):
        if high >> (8 * place):  # a zero byte adds nothing
            crc ^= _LENGTH_TABLES[place].take(places[:, place])
    return masked_column(crc)
