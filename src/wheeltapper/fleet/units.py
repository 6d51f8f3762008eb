"""A folder of many runs, cut into units: parts that can be read one by one with the answer that reading the whole gives.

A folder whose own folders are runs, or hold runs, is cut; one whose folders are parts of one run (checkpoints, event files
of a split, launches of a tracker) is not. Settings and scripts that lie in a folder that was cut belong to every run below
it, so each unit carries them along.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wheeltapper.errors import InputError
from wheeltapper.run.folders import APART, PART_OF_RUN, SPLITS, WANDB_RUN, home_of
from wheeltapper.run.gather import MOST_DEPTH, SKIP_FOLDERS, is_worth_opening, walk_files
from wheeltapper.run.one_training import TRACKERS

FEW = 4  # folders: fewer, beside files, may be the parts of one run
MANY = 20  # folders: so many beside a record are runs, and the record is one of its own
MOST_SHARED = 16  # files that every run below is read with
MOST_SHARED_BYTES = 1 << 20
SETTINGS = {".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".py", ".sh", ".bash", ".md", ".txt", ".ipynb"}


@dataclass(frozen=True, slots=True)
class Unit:
    """What is read at once. `files` are its own, `shared` those of the folders above it up to `top`."""

    path: Path
    files: tuple[Path, ...]
    shared: tuple[Path, ...] = ()
    top: Path | None = None  # None: it is what was given, read as it is


def units_of(given: Path) -> Iterator[Unit]:
    """The units of a file or a folder. Raises InputError where there is nothing."""
    top = Path(os.path.abspath(given))
    if not top.exists():
        raise InputError(f"there is no file or folder {given}.", do="Give the path of a run, or of a folder of runs.")
    if top.is_file():
        yield Unit(top, (top,))
        return
    yield from _cut(top, top, (), 0, set())


@dataclass(frozen=True, slots=True)
class _Inside:
    folders: list[str]
    files: list[Path]
    size: int

    @property
    def only_settings(self) -> bool:
        few = len(self.files) <= MOST_SHARED and self.size <= MOST_SHARED_BYTES
        return few and all(file.suffix.lower() in SETTINGS for file in self.files)


def _cut(folder: Path, top: Path, shared: tuple[Path, ...], depth: int, seen: set[tuple[int, int]]) -> Iterator[Unit]:
    inside = _look_into(folder, seen)
    if inside is None:
        return
    if depth > MOST_DEPTH or not _holds_runs(folder, inside):
        yield from _whole(folder, top, shared)
        return
    if inside.only_settings:
        below = (*shared, *inside.files)
    else:  # a record beside many folders: a run of its own, and its settings are not theirs
        below = shared
        yield Unit(folder, tuple(inside.files), shared, top)
    for name in inside.folders:
        yield from _cut(folder / name, top, below, depth + 1, seen)


def _whole(folder: Path, top: Path, shared: tuple[Path, ...]) -> Iterator[Unit]:
    folder = home_of(folder, top)
    files, _notes = walk_files(folder)
    if folder == top:
        yield Unit(folder, tuple(files))
    elif files:
        yield Unit(folder, tuple(files), shared, top)


def _look_into(folder: Path, seen: set[tuple[int, int]]) -> _Inside | None:
    """The folders and files in a folder; None where it was looked into before, by another name, or cannot be read."""
    folders, files, size = [], [], 0
    try:
        info = folder.stat()
        if (info.st_dev, info.st_ino) in seen:
            return None
        seen.add((info.st_dev, info.st_ino))
        for entry in sorted(os.scandir(folder), key=lambda e: (e.is_symlink(), e.name)):
            if entry.is_dir():
                if entry.name not in SKIP_FOLDERS:
                    folders.append(entry.name)
            elif entry.is_file() and is_worth_opening(entry.name):
                files.append(Path(entry.path))
                size += entry.stat().st_size
    except OSError:
        return None
    return _Inside(folders, files, size)


def _holds_runs(folder: Path, inside: _Inside) -> bool:
    """Are the folders in it runs, or folders of runs, and none of them a part of one?"""
    names = inside.folders
    if len(names) == 1 and not inside.files:
        return True
    trackers = sum(name.lower() in TRACKERS for name in names)
    if not names or folder.name == "wandb" or trackers > 1 or any(map(_part_of_run, names)):
        return False
    if not inside.files:
        return True
    if inside.only_settings:
        return len(names) >= FEW
    return len(names) >= MANY and not any("tfevents" in file.name for file in inside.files)


def _part_of_run(name: str) -> bool:
    low = name.lower()
    return bool(PART_OF_RUN.match(name) or WANDB_RUN.match(name)) or low in APART or low in SPLITS
