"""What runs on the node that a cluster gave us: one job by the local engine, so that limits and cleaning up are one.

Where the nodes do not share a file system, the job's folder travels as a tar file there and back.
"""

from __future__ import annotations

import io
import os
import socket
import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from wheeltapper.trial.engines import Event, Job
from wheeltapper.trial.engines.local import LocalEngine

LARGEST_FILE = 256 << 20  # bytes; what is larger stays on the node: weights are not needed for a verdict


def where() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def run_here(job: Job, gpus: tuple[str, ...] = (), every: float = 1.0) -> Iterator[Event | None]:
    """Run a job to its end: its started event, None every now and then, its ended event.

    If this process is killed, the reaper of the local engine ends what the job started; if the iteration is
    closed (a cancelled task), so does `close`.
    """
    engine = LocalEngine(max(job.cpus, 1.0), gpus)
    try:
        engine.submit(job)
        while True:
            events = engine.poll(every)
            for event in events:
                yield replace(event, where=where())
                if event.kind != "started":
                    return
            if not events:
                yield None
    finally:
        engine.close()


def packed(folder: Path, since: float = 0.0) -> bytes:
    """The files of a folder that changed after `since`, as a tar file in memory."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        for path in sorted(folder.rglob("*")):
            try:
                state = path.lstat()
            except OSError:
                continue
            if path.is_file() and not path.is_symlink() and state.st_mtime >= since and state.st_size <= LARGEST_FILE:
                tar.add(path, arcname=str(path.relative_to(folder)), recursive=False)
    return out.getvalue()


def unpacked(data: bytes, folder: Path) -> None:
    """Lay the files out; a name that leads outside the folder is refused by the filter."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        tar.extractall(folder, filter="data")


def moved(job: Job, out: str) -> Job:
    """The same job in another folder: every mention of the old one is replaced."""

    def here(text: str) -> str:
        return text.replace(job.out, out)

    env = {name: here(value) for name, value in job.env.items()}
    return replace(job, command=here(job.command), cwd=here(job.cwd), out=out, env=env)


def run_elsewhere(
    job: Job, files: bytes, gpus: tuple[str, ...], scratch: Path, every: float
) -> Iterator[Event | bytes]:
    """Run a job in a scratch folder; what it writes is handed back every now and then, and at the end."""
    home = scratch / job.id
    unpacked(files, home)
    sent = time.time()
    for event in run_here(moved(job, str(home)), gpus, every):
        now = time.time()
        if event is None or event.kind != "started":
            # A second earlier, as file times are coarse; what is sent twice is only written twice.
            yield packed(home, sent - 1.0)
            sent = now
        if event is not None:
            yield event
