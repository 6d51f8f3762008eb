"""Engines: where the arms of a trial run. ONE FILE = ONE ENGINE, found by its name.

An engine starts shell commands and says what became of them; it knows nothing of arms, configs or
statistics. The driver (trial/driver.py) writes the ledger, reads the logs and decides.

    engine = open_engine("local", slots=2)
    engine.submit(Job("control-s1", "python train.py", cwd="...", out="..."))
    for event in engine.poll(1.0): ...
    engine.close()

A module of this folder has `def engine(**options) -> Engine`; options are the strings of `--engine-option
key=value`. What every engine must keep:

- `submit` returns at once; a job waits in the engine until there is room for it.
- Each job gives exactly one "started" event (when it begins to run) and exactly one of "ended" or "lost"; a
  lost job (node gone, preempted) may be submitted again by the driver under another id, not by the engine.
- stdout and stderr of the job go to `out`/stdout.log, together, as they come.
- `cancel` ends the job and all it started; it then gives an "ended" event with why "cancelled".
- `close` cancels what is left and returns when nothing of it runs any more. Closing twice is fine.
- Commands that finish while nobody is polling are not forgotten. The command of a job is wrapped by
  `wrapped(job)`, which leaves the exit code in `out`/exit_code, so that a driver that was killed finds it.
"""

from __future__ import annotations

import importlib
import pkgutil
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from wheeltapper.errors import InputError

EXIT_CODE_FILE = "exit_code"
STDOUT_FILE = "stdout.log"


@dataclass(frozen=True, slots=True)
class Job:
    """One command to run. `id` is unique within a trial and safe as a file name."""

    id: str
    command: str  # for /bin/sh
    cwd: str
    out: str  # an absolute folder of its own, which exists
    env: Mapping[str, str] = field(default_factory=dict)  # on top of the engine's own
    cpus: float = 1.0
    gpus: float = 0.0
    memory: int | None = None  # bytes of all its processes together; None: no limit
    timeout: float | None = None  # seconds of running, not of waiting


@dataclass(frozen=True, slots=True)
class Event:
    """What became of a job. `code` is the exit code, negative for a signal, None if it is not known."""

    id: str
    kind: Literal["started", "ended", "lost"]
    at: float  # time.time()
    code: int | None = None
    why: Literal["", "timeout", "memory", "cancelled", "failed to start", "node lost"] = ""
    where: str = ""  # host and process, or the job number of a cluster


class Engine(Protocol):
    """What the driver asks of a place where arms run."""

    name: str

    def room(self) -> int:
        """How many jobs like the driver's run at the same time."""
        ...

    def submit(self, job: Job) -> str:
        """Take a job; gives where it went, for the ledger."""
        ...

    def poll(self, timeout: float = 0.0) -> list[Event]:
        """What happened since the last call; waits up to `timeout` seconds for the first event."""
        ...

    def cancel(self, job_id: str) -> None:
        """End a job that waits or runs; does nothing for one that ended."""
        ...

    def close(self) -> None:
        """End everything and give back what was leased."""
        ...


def wrapped(job: Job) -> str:
    """The shell text to run for a job: its command, and then its exit code into a file by an atomic rename.

    A job that is asked to stop (TERM) gets the time to do so, and leaves no code: it did not end by itself.

    >>> print(wrapped(Job("a", "python train.py", cwd=".", out="/t/a")))
    trap stopped=1 TERM
    ( python train.py
    )
    code=$?
    if [ -z "$stopped" ]; then echo $code > /t/a/exit_code.tmp && mv /t/a/exit_code.tmp /t/a/exit_code; fi
    exit $code
    """
    target = shlex.quote(str(Path(job.out) / EXIT_CODE_FILE))
    part = shlex.quote(str(Path(job.out) / f"{EXIT_CODE_FILE}.tmp"))
    leave = f'if [ -z "$stopped" ]; then echo $code > {part} && mv {part} {target}; fi'
    return f"trap stopped=1 TERM\n( {job.command}\n)\ncode=$?\n{leave}\nexit $code"


def exit_code_left(out: str | Path) -> int | None:
    """The exit code that a finished job left behind, or None if it did not finish by itself."""
    path = Path(out) / EXIT_CODE_FILE
    try:
        return int(path.read_text(encoding="utf-8").strip())
    except (OSError, ValueError):
        return None


def engine_names() -> list[str]:
    return sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))


def open_engine(name: str, **options: str) -> Engine:
    """The engine of that name, ready to take jobs."""
    if name not in engine_names():
        raise InputError(f"there is no engine {name!r}.", do=f"There are: {', '.join(engine_names())}.")
    module = importlib.import_module(f"{__name__}.{name}")
    opened: Engine = module.engine(**options)
    return opened
