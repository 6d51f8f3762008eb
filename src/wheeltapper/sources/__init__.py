"""Readers: one file a format. `readings_of(path)` asks each reader how sure it is and uses the surest.

A reader is a module in this folder with

    FORMAT = "HF trainer_state.json"             # or a function of the file: the name shown to the user
    def sniff(head: Head) -> float               # 0 (not mine) to 1 (certainly mine); reads only `head`
    def read(path: Path) -> list[Reading]        # never raises on bad content: a Note says what was lost

A format that is only ever appended to has `read(path, tail=None)`: with a Tail (_tail.py) it goes on where the last
look stopped, so that follow.py need not read a growing file over. A file that must not be opened while it may be written
has `glance(path)`, which tells what can be told from outside.

Generic readers answer at most 0.3, so that a reader that knows the format always wins. Registration is
by being in the folder; modules whose name starts with an underscore, and `record`, are not readers.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from wheeltapper.errors import ContractError
from wheeltapper.sources.record import Note, Reading

HEAD_BYTES = 65536  # enough for any header seen in the corpus; small enough to read from thousands of files
NOT_READERS = {"record", "follow"}
_NO_CURVE = re.compile(r"(?i)(^|[^a-z])(lr|learning.?rate|time|taken|eta|speed|mem|size|num)([^a-z]|$)")


@dataclass(frozen=True, slots=True)
class Head:
    """The start of a file: all that sniffing may look at."""

    path: Path
    size: int
    data: bytes

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", errors="replace")

    @property
    def looks_binary(self) -> bool:
        return b"\x00" in self.data[:4096]


def head_of(path: Path) -> Head:
    with path.open("rb") as file:
        data = file.read(HEAD_BYTES)
    return Head(path=path, size=path.stat().st_size, data=data)


@cache
def readers() -> tuple[ModuleType, ...]:
    """Every reader module, in name order."""
    found = []
    for info in pkgutil.iter_modules(__path__):
        if info.name.startswith("_") or info.name in NOT_READERS or info.ispkg:
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        for needed in ("FORMAT", "sniff", "read"):
            if not hasattr(module, needed):
                raise ContractError(f"the reader sources/{info.name}.py has no `{needed}`")
        found.append(module)
    return tuple(found)


def ranked(head: Head) -> Iterator[tuple[float, ModuleType]]:
    """Readers that claim the file, surest first."""
    claims = [(float(reader.sniff(head)), reader) for reader in readers()]
    claims = [claim for claim in claims if claim[0] > 0]
    claims.sort(key=lambda claim: (-claim[0], claim[1].__name__))
    yield from claims


def tells(readings: list[Reading]) -> bool:
    """Did the reader get something out of the file?"""
    return any(r.points or r.configs or r.events or r.checkpoints or r.facts for r in readings)


def has_curve(readings: list[Reading]) -> bool:
    """Is there a series that is more than a setting, a rate or a time?"""
    return any(len(p.values) >= 3 and not _NO_CURVE.search(p.name) for r in readings for p in r.points)


def suits(reader: ModuleType, readings: list[Reading], *, after_loose: bool = False) -> bool:
    """Is the file the reader's own, by what it got out of it? A reader of free text (LOOSE) may claim a file for one
    line of it; if it then finds no curve, one that claims the file less surely may have it, if that finds one."""
    return tells(readings) and (has_curve(readings) or not (after_loose or getattr(reader, "LOOSE", False)))


def readings_of(path: Path) -> list[Reading]:
    """Read one file with the surest reader that gets something out of it."""
    try:
        head = head_of(path)
    except OSError as error:
        note = Note(f"cannot be opened: {error.strerror}", str(path), level="lost")
        return [Reading(str(path), "unreadable", notes=(note,))]
    first: list[Reading] | None = None
    for _, reader in ranked(head):
        readings: list[Reading] = reader.read(path)
        if suits(reader, readings, after_loose=first is not None and tells(first)):
            return readings
        if first is None or (tells(readings) and not tells(first)):
            first = readings
    return first or [Reading(str(path), "not understood", notes=(Note("no reader recognises this file", str(path)),))]
