"""A log or a table compressed with gzip, bzip2 or xz: `train.log.gz`."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wheeltapper.reading import Head
from wheeltapper.reading._within import MOST_BYTES, readings_within
from wheeltapper.reading.record import Note, Reading

FORMAT = "compressed file"
_MAGIC: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
_NO_LOGS = {".nii", ".npy", ".npz", ".pt", ".pth", ".pkl", ".idx1-ubyte", ".idx3-ubyte", ".tar", ".fastq", ".vcf"}


def sniff(head: Head) -> float:
    inner = Path(head.path.stem).suffix.lower()
    known = any(head.data.startswith(magic) for magic in _MAGIC)
    return 0.9 if known and inner not in _NO_LOGS and head.path.suffix.lower() in (".gz", ".bz2", ".xz") else 0.0


def read(path: Path) -> list[Reading]:
    file = str(path)
    notes: list[Note] = []
    data = b""
    try:
        with path.open("rb") as raw:
            start = raw.read(6)
        opener = next(o for magic, o in _MAGIC.items() if start.startswith(magic))
        data, whole = _bounded(opener, path)
        if not whole:
            notes.append(Note(f"more than {MOST_BYTES >> 20} MB unpacked; the rest is not read", file, level="lost"))
    except (OSError, EOFError, zlib.error, lzma.LZMAError, StopIteration) as error:
        notes.append(Note(f"cannot be unpacked: {str(error)[:100]}", file, level="lost"))
    found = readings_within(path, [(path.stem, data)]) if data else []
    return [*found, *([Reading(file, FORMAT, notes=tuple(notes))] if notes or not found else [])]


def _bounded(opener: Callable[[Path], Any], path: Path) -> tuple[bytes, bool]:
    """What the file unpacks to, up to the limit; a file cut in the middle gives what came before."""
    parts: list[bytes] = []
    size = 0
    with opener(path) as file:
        while size <= MOST_BYTES:
            try:
                part = file.read(1 << 20)
            except (EOFError, zlib.error, lzma.LZMAError, OSError):
                if not parts:
                    raise
                break
            if not part:
                return b"".join(parts), True
            parts.append(part)
            size += len(part)
    return b"".join(parts), False
