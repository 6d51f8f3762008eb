"""What the guard writes: a journal of lines, each on the disk before it counts, and checkpoints that are whole or not
there. A disk that is full or read-only is told once; after that the guard keeps to memory and training goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from wheeltapper.guard.snapshot import unsound

log = logging.getLogger("wheeltapper.guard")

JOURNAL = "guard.jsonl"
KEEP = 2  # checkpoints on disk: the newest, and one in case it dies with the disk block it is on


class Journal:
    """Lines in run_dir/guard.jsonl (guard.rankN.jsonl on other ranks). `lost` says why nothing more is written."""

    def __init__(self, folder: Path | None, rank: int = 0) -> None:
        self.folder, self.lost = folder, None if folder is not None else "no run_dir"
        self.path = folder / (JOURNAL if rank == 0 else f"guard.rank{rank}.jsonl") if folder is not None else None
        self.earlier = list(read(self.path)) if self.path is not None else []
        self._rank = rank

    def write(self, event: str, **facts: Any) -> None:
        if self.lost is not None or self.path is None:
            return
        line = json.dumps({"event": event, "time": time.time(), **facts}, default=str, allow_nan=True) + "\n"
        with self.kept("the journal"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab") as file:
                # A line that a crash cut short stays a line of its own.
                if file.tell() and not ends_with_newline(self.path):
                    line = "\n" + line
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())

    @contextlib.contextmanager
    def kept(self, what: str) -> Iterator[None]:
        """An OSError inside is told once and ends all writing."""
        try:
            yield
        except OSError as error:
            self.lost = f"{what}: {error}"
            log.warning("cannot write to %s (%s); training goes on, the guard keeps to memory", self.folder, error)

    def used(self) -> int:
        """Recoveries that earlier processes of this run have made."""
        return sum(1 for line in self.earlier if line.get("event") == "recovery")


def ends_with_newline(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a journal that are whole."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


def save(state: Mapping[str, Any], folder: Path, rank: int, kind: str = "good") -> tuple[Path, str]:
    """Write a state, read it back, and only then give it its name. Returns the file and its SHA-256.

    The file is written under another name, flushed to the disk and renamed: a process killed at any moment leaves
    the older checkpoints and perhaps a .part file, never half a checkpoint with a good name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    step = int(state["step"])
    name = f"{kind}-{step:08d}" + (f".rank{rank}" if rank else "") + ".pt"
    part = folder / f".{name}.{os.getpid()}.part"
    try:
        with open(part, "wb") as file:
            torch.save(dict(state), file)
            file.flush()
            os.fsync(file.fileno())
        if kind == "good":
            verify(part, step)
        digest = sha256(part)
        os.replace(part, folder / name)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    sync_folder(folder)
    return folder / name, digest


def verify(path: Path, step: int, digest: str | None = None) -> dict[str, Any]:
    """Read a checkpoint back: the right hash, loadable without running code, the right step, every number finite."""
    if digest is not None and sha256(path) != digest:
        raise ValueError(f"{path.name} is not the file that was written: its hash differs")
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    if state.get("step") != step:
        raise ValueError(f"{path.name} holds step {state.get('step')}, not {step}")
    bad = float(unsound(state["model"], state.get("buffers", ()), state["optimizer"]))
    if bad:
        raise ValueError(f"{path.name}: {bad:.0f} tensors are not finite")
    return state


def checkpoints(journal: Journal) -> dict[int, dict[str, Any]]:
    """The journal's last line about the good checkpoint of each step, latest lines first. The state that a run was
    stopped in is finite, and no more is known of it: it may be the trouble itself."""
    found: dict[int, dict[str, Any]] = {}
    for line in reversed(journal.earlier):
        good = line.get("event") == "checkpoint" and line.get("kind") == "good"
        if good and isinstance(line.get("step"), int):
            found.setdefault(line["step"], line)
    return found


def good_steps(journal: Journal) -> list[int]:
    """Steps of the checkpoints that the journal calls good and whose files are there, last written first."""
    folder = journal.folder
    if folder is None:
        return []
    return [s for s, line in checkpoints(journal).items() if (folder / Path(str(line.get("file"))).name).exists()]


def sound(journal: Journal, step: int) -> tuple[dict[str, Any], Path] | None:
    """The checkpoint of a step, if it passes every test."""
    line = checkpoints(journal).get(step)
    if line is None or journal.folder is None:
        return None
    path = journal.folder / Path(str(line.get("file"))).name
    try:
        return verify(path, step, str(line["sha256"])), path
    except Exception as error:  # a damaged file raises whatever its bytes lead to
        log.warning("checkpoint %s cannot be used: %s", path.name, error)
        return None


def prune(folder: Path, rank: int) -> None:
    """Keep the newest KEEP good checkpoints of this rank and clear what a killed process left."""
    tail = f".rank{rank}.pt" if rank else ".pt"
    mine = [p for p in folder.glob("good-*" + tail) if rank or ".rank" not in p.name]
    # A part an hour old is no longer being written, by whatever process on whatever machine.
    dead = [p for p in folder.glob(".*.part") if time.time() - p.stat().st_mtime > 3600]
    for old in sorted(mine)[:-KEEP] + dead:
        with contextlib.suppress(OSError):
            old.unlink()


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_folder(folder: Path) -> None:
    """The rename itself reaches the disk; not every file system lets one ask."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
