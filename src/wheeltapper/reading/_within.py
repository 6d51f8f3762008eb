"""What lies inside another file (a compressed log, the output of a notebook's cells), read as if it were a file of its own.

It is unpacked to a temporary file, bounded in size, and the readings are given the name of the file it came from.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from wheeltapper.reading import readings_of, tells
from wheeltapper.reading.record import Note, Reading

MOST_BYTES = 1 << 28  # unpacked: a log of 256 MB has some million rows


def readings_within(path: Path, pieces: Iterable[tuple[str, bytes]], key: bool = False) -> list[Reading]:
    """The readings of each piece, a name (for its ending) and its bytes; `key`: each is a run of its own."""
    out: list[Reading] = []
    with tempfile.TemporaryDirectory(prefix="wheeltapper-") as folder:
        for i, (name, data) in enumerate(pieces):
            place = Path(folder) / f"{i}" / name
            place.parent.mkdir()
            place.write_bytes(data)
            found = readings_of(place)
            if tells(found):
                out += [_as_of(r, str(place), str(path), f"cell {i + 1}" if key else r.key) for r in found]
    return out


def _as_of(reading: Reading, inner: str, file: str, key: str | None) -> Reading:
    def source(text: str) -> str:
        return text.replace(inner, file)

    return replace(
        reading,
        file=file,
        points=tuple(replace(p, file=file) for p in reading.points),
        configs=tuple(
            replace(c, file=file, text=None, leaves=tuple(replace(leaf, file=file, start=None, end=None) for leaf in c))
            for c in reading.configs
        ),
        facts=tuple(replace(f, source=source(f.source)) for f in reading.facts),
        events=tuple(replace(e, file=file) for e in reading.events),
        notes=tuple(Note(source(n.text), file, n.line, n.level) for n in reading.notes),
        key=key,
    )
