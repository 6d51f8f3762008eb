"""What the guard writes: a journal of lines, each on the disk before it counts, and checkpoints that are whole or not
there. A disk that is full or read-only is told once; then the guard keeps to memory, training goes on, and the disk is
tried again now and then: what was to be said meanwhile is written when it takes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from wheeltapper.guard.snapshot import unsound

log = logging.getLogger("wheeltapper.guard")

HOST = socket.gethostname().replace("/", "_")
JOURNAL = "guard.jsonl"
UNSAID = 1000  # lines kept in memory while the disk takes none
PAUSE = 60.0  # seconds before a disk that failed is tried again: a quota is raised in minutes, a mount comes back
KEEP = 2  # checkpoints on disk: the newest, and one in case it dies with the disk block it is on


class Journal:
    """Lines in run_dir/guard.jsonl (guard.rankN.jsonl on other ranks). `lost` says why nothing is written at present."""

    def __init__(self, folder: Path | None, rank: int = 0) -> None:
        self.folder, self.lost = folder, None if folder is not None else "no run_dir"
        self.path = folder / (JOURNAL if rank == 0 else f"guard.rank{rank}.jsonl") if folder is not None else None
        self.earlier = list(read(self.path)) if self.path is not None else []
        self._rank = rank
        self._unsaid: deque[str] = deque(maxlen=UNSAID)  # lines that the disk did not take
        self._lock = threading.Lock()
        self._told = False
        self._again = 0.0  # when the disk is tried next, on the monotonic clock
        if folder is not None:
            clear_parts(folder)

    def write(self, event: str, **facts: Any) -> None:
        with self._lock:  # a checkpoint is written in a thread of its own
            self._write(event, facts)

    def _write(self, event: str, facts: Mapping[str, Any]) -> None:
        if self.path is None:
            return
        self._unsaid.append(json.dumps({"event": event, "time": time.time(), **facts}, default=str, allow_nan=True))
        if not self.usable():
            return
        with self.kept("the journal"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab") as file:
                before = file.tell()
                # A line that a crash cut short stays a line of its own.
                start = "\n" if before and not ends_with_newline(self.path) else ""
                try:
                    file.write((start + "".join(f"{line}\n" for line in self._unsaid)).encode())
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    with contextlib.suppress(OSError):
                        file.truncate(before)  # else they would stand there twice when they are written again
                    raise
            self._unsaid.clear()
            if self.lost is not None:
                self.lost = None
                log.warning("%s takes writing again", self.folder)

    def usable(self) -> bool:
        """Whether to write: the disk takes it, or it is time to try again."""
        return self.path is not None and (self.lost is None or time.monotonic() >= self._again)

    @contextlib.contextmanager
    def kept(self, what: str) -> Iterator[None]:
        """An error of the disk inside is told once; then nothing is written for a while."""
        try:
            yield
        except (OSError, RuntimeError) as error:  # torch tells a full disk by a RuntimeError
            self.lost = f"{what}: {error}"
            self._again = time.monotonic() + PAUSE
            if not self._told:
                log.warning("cannot write to %s (%s); training goes on, the guard keeps to memory", self.folder, error)
            self._told = True

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
    part = folder / f".{name}.{HOST}-{os.getpid()}.part"
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
    for old in sorted(mine)[:-KEEP]:
        with contextlib.suppress(OSError):
            old.unlink()
    clear_parts(folder)


def clear_parts(folder: Path) -> None:
    """Throw away what killed processes left half-written: at once if the process was on this machine and is gone, after
    an hour whatever it was."""
    with contextlib.suppress(OSError):
        for part in [*folder.glob(".*.part"), *folder.glob(".incident-*")]:
            with contextlib.suppress(OSError):
                if _gone(part.name) or time.time() - part.stat().st_mtime > 3600:
                    shutil.rmtree(part) if part.is_dir() else part.unlink()


def _gone(name: str) -> bool:
    host, _, pid = name.removesuffix(".part").rpartition("-")
    if not host.endswith(f".{HOST}") or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


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
