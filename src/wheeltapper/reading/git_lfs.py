"""A Git LFS pointer that stands where the data should be."""

from __future__ import annotations

from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import is_lfs_pointer, whole
from wheeltapper.reading.record import Note, Reading

FORMAT = "Git LFS pointer"


def sniff(head: Head) -> float:
    return 1.0 if is_lfs_pointer(head.data) else 0.0


def read(path: Path) -> list[Reading]:
    notes: list[Note] = []
    if whole(path, notes):
        notes.append(Note("not a Git LFS pointer", str(path)))
    return [Reading(str(path), FORMAT, notes=tuple(notes))]
