"""By what an answer is remembered: the content of a unit, and the judge that judged it.

Looking at sizes and times of change is enough to see that a unit is as it was. Where they differ its content decides, so a
run that was copied, moved or touched is not read again. Of large files (checkpoints) the size, the time and both ends count.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

from wheeltapper import __version__
from wheeltapper.fleet.units import Unit
from wheeltapper.judge.model import Lines
from wheeltapper.trial.ledger import LEDGER_FILE

LARGE = 8 << 20  # bytes
END = 1 << 16  # bytes at each end of a large file
PACKAGE = Path(__file__).resolve().parents[1]
# Parts of the package that show answers and do not make them.
SHOWING = {"cli", "web", "watch", "lab", "guard", "testing.py", "places", "notebook.py", "shown.py"}


@cache
def judge_key(lines: Lines) -> str:
    """The judge as it is now: version, program, fitted tables, and the lines between the verdicts."""
    digest = hashlib.sha256(f"{__version__}\0{lines.ill}\0{lines.sound}".encode())
    for file in sorted(PACKAGE.rglob("*")):
        inside = file.relative_to(PACKAGE)
        if file.suffix in {".py", ".json", ".toml"} and inside.parts[0] not in SHOWING:
            digest.update(f"\0{inside.as_posix()}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


def stamp_of(unit: Unit) -> str:
    """Sizes and times of change of all that the answer rests on. Raises OSError where a file went away."""
    digest = hashlib.blake2b(digest_size=16)
    for file in (*unit.files, *unit.shared):
        info = os.stat(file)
        digest.update(f"{file}\0{info.st_size}\0{info.st_mtime_ns}\0{info.st_ino}\n".encode(errors="surrogateescape"))
    digest.update(_trials_beside(unit.path.parent).encode())
    return digest.hexdigest()


def content_of(unit: Unit) -> str:
    """What the files of a unit hold, by their places in it; the name of its folder names the run, so it counts too."""
    digest = hashlib.sha256(unit.path.name.encode(errors="surrogateescape"))
    digest.update(b"alone" if unit.top is None else b"among others")
    for file in (*unit.files, *unit.shared):
        place = os.path.relpath(file, unit.path)
        digest.update(f"\0{place}\0".encode(errors="surrogateescape"))
        digest.update(_file_digest(file))
    digest.update(_trials_beside(unit.path.parent).encode())
    return digest.hexdigest()[:32]


def _file_digest(file: Path) -> bytes:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        info = os.fstat(opened.fileno())
        if info.st_size <= LARGE:
            digest.update(opened.read(LARGE + 1))
        else:
            digest.update(f"{info.st_size}\0{info.st_mtime_ns}\0".encode())
            digest.update(opened.read(END))
            opened.seek(-END, os.SEEK_END)
            digest.update(opened.read(END))
    return digest.digest()


def _trials_beside(folder: Path) -> str:
    """Trials that lie beside a run and speak for or against its causes."""
    try:
        changed = folder.stat().st_mtime_ns
    except OSError:
        return ""
    return _trials_in(str(folder), changed)


@cache
def _trial_folders(folder: str, _changed: int) -> tuple[str, ...]:
    return tuple(sorted(e.path for e in os.scandir(folder) if e.name.startswith("trial") and e.is_dir()))


def _trials_in(folder: str, changed: int) -> str:
    out = []
    for place in _trial_folders(folder, changed):
        ledger = os.path.join(place, LEDGER_FILE)
        try:
            info = os.stat(ledger)
        except OSError:
            continue
        out.append(f"{ledger}\0{info.st_size}\0{info.st_mtime_ns}")
    return "\n".join(out)
