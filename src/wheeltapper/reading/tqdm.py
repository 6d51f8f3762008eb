"""Logs of progress bars: tqdm's states and the values in their postfix. A bar without values tells progress only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._bars import BAR
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import head_text
from wheeltapper.reading.generic_text import read_repeated
from wheeltapper.reading.record import Note, Reading

FORMAT = "tqdm progress bars"


def sniff(head: Head) -> float:
    text = head_text(head)
    return 0.4 if sum(1 for _ in zip(BAR.finditer(text), range(3), strict=False)) >= 3 else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    reading = read_repeated(path, FORMAT, tail)
    if reading.points:
        return [reading]
    note = Note("only progress bars: no loss, no metric, so nothing can be judged", str(path), level="info")
    return [replace(reading, notes=(*reading.notes, note))]
