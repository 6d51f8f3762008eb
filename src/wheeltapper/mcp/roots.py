"""What a server may read: folders that were named when it was started, and nothing that leads out of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from wheeltapper.errors import InputError

MOST_ENTRIES = 20_000  # of a folder that is looked through for links and changes
Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Roots:
    """The allowed folders, resolved. A path is given from one of them, or whole."""

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, names: list[str]) -> Roots:
        folders = []
        for name in names:
            path = Path(name).resolve()
            if not path.is_dir():
                raise InputError(f"there is no folder {name}.", do="Name folders that hold runs.")
            folders.append(path)
        if not folders:
            raise InputError("no folder is allowed.", do="Name at least one folder that may be read.")
        return cls(tuple(folders))

    def find(self, name: str) -> Path:
        """The file or folder that is meant; an error where there is none, or where it lies outside."""
        if "\0" in name or len(name) > 4000:
            raise InputError("that is no path.", do="Give a path as `list_runs` lists it.")
        outside = False
        for folder in self.folders:
            try:
                path = (folder / name).resolve()
                there = path.exists()
            except (OSError, ValueError, RuntimeError):
                continue
            if not self.holds(path):
                outside = True
            elif there:
                self._refuse_links(path)
                return path
        if outside:
            raise InputError(
                f"{_shown(name)} lies outside the folders that may be read.", do="Give a path as `list_runs` lists it."
            )
        raise InputError(
            f"there is no {_shown(name)} in the folders that may be read.", do="Call list_runs to see what there is."
        )

    def holds(self, path: Path) -> bool:
        return any(path == folder or folder in path.parents for folder in self.folders)

    def name_of(self, path: Path) -> str:
        """A path as it is shown: from its root."""
        for folder in self.folders:
            if path == folder or folder in path.parents:
                return path.relative_to(folder).as_posix()
        return path.name

    def _refuse_links(self, path: Path) -> None:
        """A link inside a run must not lead out of the allowed folders."""
        for entry in walk(path):
            if entry.is_symlink() and not self.holds(Path(os.path.realpath(entry.path))):
                raise InputError(
                    f"{_shown(self.name_of(Path(entry.path)))} is a link that leads out of the folders that may be read.",
                    do="Read another run, or allow the folder it leads to.",
                )


def walk(path: Path) -> list[os.DirEntry[str]]:
    """The entries below a folder, hidden ones too; links are not followed."""
    out: list[os.DirEntry[str]] = []
    waiting = [str(path)] if path.is_dir() else []
    while waiting and len(out) < MOST_ENTRIES:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    out.append(entry)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return out


def stamp_of(path: Path) -> Stamp:
    """Names, sizes and times of what a run left: another stamp, another run."""
    entries = walk(path)
    if not entries and path.is_file():
        told = path.stat()
        return ((str(path), told.st_size, told.st_mtime_ns),)
    out = []
    for entry in entries:
        try:
            told = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if not entry.is_dir(follow_symlinks=False):
            out.append((entry.path, told.st_size, told.st_mtime_ns))
    return tuple(sorted(out))


def _shown(name: str) -> str:
    return repr(name[:200])
