"""The engine for a Ray cluster: an existing one by its address, or one started here for the trial.

    wheeltapper trial RUN --cmd ... --engine ray
    wheeltapper trial RUN --cmd ... --engine ray --engine-option address=10.0.0.5:6379 --engine-option artefacts=store

Each job is a Ray task that runs the command by the local engine of that node and streams its events back. A
worker or a node that is lost gives a "lost" event; Ray itself is told not to retry, since the driver does it
under a new id. `artefacts=shared`: the trial's folder is on a file system that all nodes see. `artefacts=store`:
the folder of a job goes there and back through Ray's object store, every few seconds and at the end. The nodes
need wheeltapper and what the training needs.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from wheeltapper.errors import InputError, MissingExtra
from wheeltapper.trial.engines import Event, Job, exit_code_left
from wheeltapper.trial.engines._node import packed, run_elsewhere, run_here, unpacked, where

EVERY = 2.0  # seconds between two deliveries of files
PATIENCE = 10.0  # seconds for a cancelled task to end its processes before its worker is killed
Artefacts = Literal["shared", "store"]


@dataclass(slots=True)
class _Task:
    job: Job
    stream: Any  # ray.ObjectRefGenerator
    started: bool = False
    kill_at: float | None = None  # monotonic; set once it was cancelled
    place: str = ""


def _ray() -> Any:
    """Ray's own types differ from release to release and are not there without the extra: it is taken as it is."""
    return importlib.import_module("ray")


def _work(job: Job, files: bytes | None) -> Iterator[tuple[str, Any]]:
    """The task. It yields ("event", Event) and ("files", tar)."""
    ray = _ray()
    gpus = tuple(str(one) for one in ray.get_gpu_ids())
    yield "place", where()
    if files is None:
        for event in run_here(job, gpus, EVERY):
            if event is not None:
                yield "event", event
        return
    with tempfile.TemporaryDirectory(prefix="wheeltapper-") as scratch:
        for item in run_elsewhere(job, files, gpus, Path(scratch), EVERY):
            yield ("files", item) if isinstance(item, bytes) else ("event", item)


class RayEngine:
    """See the module."""

    name = "ray"

    def __init__(self, address: str = "", cpus: float | None = None, artefacts: Artefacts = "shared") -> None:
        if find_spec("ray") is None:
            raise MissingExtra("ray", "ray", "The engine ray")
        ray = _ray()
        self._ray, self._artefacts = ray, artefacts
        self._ours = not ray.is_initialized()
        if self._ours:
            # Ray says much on the terminal that means nothing to who runs a trial; its own logs keep it.
            os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
            quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
            try:
                if address:
                    ray.init(address=address, **quiet)
                else:
                    ray.init(
                        address="local", num_cpus=None if cpus is None else int(cpus), include_dashboard=False, **quiet
                    )
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise InputError(
                    f"no Ray cluster answers at {address or 'this machine'}: {str(error).splitlines()[0]}",
                    do="Start one with `ray start --head`, or leave the address out.",
                ) from None
        self._task = ray.remote(max_retries=0, num_returns="streaming")(_work)
        self._tasks: dict[str, _Task] = {}
        self._events: list[Event] = []

    def room(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, job: Job) -> str:
        have = self._ray.cluster_resources()
        if job.cpus > have.get("CPU", 0) or job.gpus > have.get("GPU", 0):
            raise InputError(
                f"a job needs {job.cpus:g} processors and {job.gpus:g} GPUs; the cluster has {have.get('CPU', 0):g} and "
                f"{have.get('GPU', 0):g} in all.",
                do="Ask for less with --cpus and --gpus.",
            )
        files = self._ray.put(packed(Path(job.out))) if self._artefacts == "store" else None
        options = {"num_cpus": job.cpus, "num_gpus": job.gpus, "name": job.id}
        self._tasks[job.id] = _Task(job, self._task.options(**options).remote(job, files))
        return "ray"

    def poll(self, timeout: float = 0.0) -> list[Event]:
        until = time.monotonic() + timeout
        while True:
            self._look(max(0.0, min(0.5, until - time.monotonic())))
            if self._events or time.monotonic() >= until:
                out, self._events = self._events, []
                return out

    def cancel(self, job_id: str) -> None:
        task = self._tasks.get(job_id)
        if task is not None and task.kill_at is None:
            task.kill_at = time.monotonic() + PATIENCE
            self._ray.cancel(task.stream, force=False)

    def close(self) -> None:
        for job_id in list(self._tasks):
            self.cancel(job_id)
        while self._tasks and self._ray.is_initialized():
            self._look(0.2)
        if self._ours and self._ray.is_initialized():
            self._ray.shutdown()

    # ------------------------------------------------------------------ inside

    def _look(self, seconds: float) -> None:
        if not self._tasks:
            time.sleep(seconds)
            return
        by_stream = {task.stream: task for task in self._tasks.values()}
        ready, _ = self._ray.wait(list(by_stream), num_returns=1, timeout=seconds, fetch_local=False)
        for stream in ready:
            self._take(by_stream[stream])
        for task in self._tasks.values():
            if task.kill_at is not None and time.monotonic() >= task.kill_at:
                task.kill_at = time.monotonic() + PATIENCE
                with contextlib.suppress(Exception):  # it may have ended in this moment
                    self._ray.cancel(task.stream, force=True)

    def _take(self, task: _Task) -> None:
        """One message of a task, or its end."""
        exceptions = self._ray.exceptions
        try:
            kind, content = self._ray.get(next(task.stream))
        except (StopIteration, exceptions.TaskCancelledError, KeyboardInterrupt):
            self._end(task, "")
        except (exceptions.RayError, OSError) as error:
            self._end(task, type(error).__name__)
        else:
            if kind == "files":
                unpacked(content, Path(task.job.out))
            elif kind == "place":
                task.place = content
            elif content.kind == "started":
                task.started = True
                self._events.append(content)
            else:
                self._finish(task, content)

    def _end(self, task: _Task, trouble: str) -> None:
        """The stream ended without an ended event: cancelled, or lost with its worker."""
        if task.job.id not in self._tasks:
            return
        now, code = time.time(), exit_code_left(task.job.out)
        if task.kill_at is not None:
            self._finish(task, Event(task.job.id, "ended", now, None, "cancelled", task.place))
        elif code is not None:  # the command was through before its worker went
            self._finish(task, Event(task.job.id, "ended", now, code, "", task.place))
        else:
            self._finish(task, Event(task.job.id, "lost", now, None, "node lost", f"{task.place} {trouble}".strip()))

    def _finish(self, task: _Task, event: Event) -> None:
        if not task.started:
            self._events.append(Event(task.job.id, "started", event.at, None, "", task.place))
        self._events.append(event)
        self._tasks.pop(task.job.id, None)


def engine(address: str = "", cpus: str | None = None, artefacts: str = "shared") -> RayEngine:
    """`address`: of a running cluster, or "auto"; empty: start one here with `cpus` processors."""
    if artefacts not in ("shared", "store"):
        raise InputError(f"the engine option artefacts={artefacts!r} is neither shared nor store.")
    try:
        return RayEngine(address, None if cpus is None else float(cpus), "store" if artefacts == "store" else "shared")
    except ValueError:
        raise InputError(f"the engine option cpus={cpus!r} is not a number.") from None
