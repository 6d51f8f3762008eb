"""The engine for Slurm, through submitit. The trial's folder must be on a file system that the nodes share.

    wheeltapper trial RUN --cmd ... --engine slurm --engine-option partition=gpu --engine-option time=240

Each job is one Slurm job that runs the command by the local engine of its node and leaves two small files in
its folder: when it began and how it ended. Slurm is only asked, all jobs in one question, for those that left
none; submitit itself would ask sacct, which many clusters have not set up. A job that Slurm took away (node failed, preempted) is "lost"; the driver
submits it again. `cluster=local` runs the same way in processes of this machine and `cluster=debug` inside
this process, one after the other: for tests, and to try a command before it waits in a queue.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import re
import subprocess
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from wheeltapper.errors import InputError, MissingExtra
from wheeltapper.trial.engines import Event, Job, exit_code_left
from wheeltapper.trial.engines._node import run_here

BEGAN, END = "node_began.json", "node_end.json"
LAG = 10.0  # seconds that a shared file system may take to show a file after Slurm says the job is over
NAP = 0.25  # seconds between looks at the files
ASK_EVERY, ASK_SOON = 15.0, 2.0  # seconds between questions to Slurm; soon: a job was cancelled or may be gone
ROOM = 32  # jobs in the queue at once; schedulers limit how many a user may have
Why = Literal["", "timeout", "memory", "cancelled"]
OUR_WORDS: dict[str, Why] = {"OUT_OF_MEMORY": "memory", "TIMEOUT": "timeout", "DEADLINE": "timeout"}


@dataclass(slots=True)
class _Task:
    job: Job
    handle: Any  # submitit.Job
    submitted: float  # monotonic
    started: bool = False
    cancelled: bool = False
    over_since: float | None = None  # monotonic; it is over by what the cluster says, and no file is there


def _on_node(job: Job) -> int | None:
    """What Slurm runs."""
    gpus = tuple(part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part not in ("", "-1"))
    code = None
    for event in run_here(job, gpus):
        if event is not None:
            name = BEGAN if event.kind == "started" else END
            part = Path(job.out, f"{name}.tmp")
            part.write_text(
                json.dumps({"at": event.at, "code": event.code, "why": event.why, "where": event.where}),
                encoding="utf-8",
            )
            part.replace(Path(job.out, name))
            code = event.code
    return code


def _left(job: Job, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(Path(job.out, name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _ask(*command: str) -> str | None:
    """What a command of Slurm prints; None if it does not answer."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None


class SlurmEngine:
    """See the module. `settings` are submitit's own, such as slurm_partition."""

    name = "slurm"

    def __init__(self, folder: str | None, cluster: str, room: int, time_limit: int, settings: dict[str, Any]) -> None:
        if find_spec("submitit") is None:
            raise MissingExtra("slurm", "submitit", "The engine slurm")
        self._folder, self._cluster, self._room, self._minutes = folder, cluster, room, time_limit
        self._settings = settings
        self._tasks: dict[str, _Task] = {}
        self._events: list[Event] = []
        self._queue: set[str] = set()  # what Slurm had at the last question
        self._asked = -math.inf  # monotonic
        self._asks = 0

    def room(self) -> int:
        return self._room

    def submit(self, job: Job) -> str:
        submitit: Any = importlib.import_module("submitit")
        folder = self._folder or str(Path(job.out) / "slurm")
        try:
            executor = submitit.AutoExecutor(folder=folder, cluster=self._cluster)
        except RuntimeError as error:
            raise InputError(
                f"submitit finds no Slurm here: {error}",
                do="Run this on a login node (sbatch must be in the path), or use --engine local.",
            ) from None
        limit = self._minutes if job.timeout is None else min(self._minutes, math.ceil(job.timeout / 60) + 2)
        parameters: dict[str, Any] = {"timeout_min": limit, "cpus_per_task": math.ceil(job.cpus), "name": job.id[:60]}
        if job.gpus:
            parameters["gpus_per_node"] = math.ceil(job.gpus)
        if job.memory is not None:
            # Ours ends a job that takes too much and says so; Slurm's limit lies a tenth above it.
            parameters["mem_gb"] = math.ceil(1.1 * job.memory / 2**30)
        executor.update_parameters(**parameters, **self._settings)
        try:
            handle = executor.submit(_on_node, job)
        except Exception as error:  # submitit raises what sbatch said, in several types
            self._events.append(Event(job.id, "started", time.time()))
            words = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
            self._events.append(Event(job.id, "ended", time.time(), None, "failed to start", words))
            return "refused"
        self._tasks[job.id] = _Task(job, handle, time.monotonic())
        return f"{self._cluster}:{handle.job_id}"

    def poll(self, timeout: float = 0.0) -> list[Event]:
        until = time.monotonic() + timeout
        while True:
            for task in list(self._tasks.values()):
                self._look(task)
            left = until - time.monotonic()
            if self._events or left <= 0:
                out, self._events = self._events, []
                return out
            time.sleep(min(NAP, left))

    def cancel(self, job_id: str) -> None:
        task = self._tasks.get(job_id)
        if task is not None and not task.cancelled:
            task.cancelled = True
            with contextlib.suppress(Exception):  # it may have ended in this moment
                task.handle.cancel(check=False)

    def close(self) -> None:
        for job_id in list(self._tasks):
            self.cancel(job_id)
        while self._tasks:
            for task in list(self._tasks.values()):
                self._look(task)
            time.sleep(NAP if self._tasks else 0.0)

    # ------------------------------------------------------------------ inside

    def _look(self, task: _Task) -> None:
        began = None if task.started else _left(task.job, BEGAN)
        if began is not None:
            self._begin(task, began["at"], began["where"])
        end = _left(task.job, END)
        if end is not None:
            why: Why = "cancelled" if task.cancelled else end["why"]
            return self._finish(task, Event(task.job.id, "ended", end["at"], end["code"], why, end["where"]))
        if not self._over(task):
            return None
        task.over_since = task.over_since or time.monotonic()
        if time.monotonic() - task.over_since >= (LAG if self._cluster == "slurm" and not task.cancelled else 0.0):
            self._gone(task)
        return None

    def _over(self, task: _Task) -> bool:
        if self._cluster == "slurm":
            return self._not_queued(task)
        if self._cluster == "debug" and task.cancelled:
            return True
        return bool(task.handle.done())

    def _not_queued(self, task: _Task) -> bool:
        """One question for all jobs; an answer is used until the next. No answer (a busy controller) says nothing."""
        soon = any(one.cancelled or one.over_since is not None for one in self._tasks.values())
        if time.monotonic() - self._asked >= (ASK_SOON if soon else ASK_EVERY):
            self._asked = time.monotonic()
            found = _ask("squeue", "--me", "--noheader", "--format=%i")
            if found is not None:
                self._queue, self._asks = set(found.split()), self._asks + 1
        if not self._asks or task.submitted > self._asked:
            return False
        return str(task.handle.job_id) not in self._queue

    def _state(self, task: _Task) -> str:
        """How the cluster says it ended, in Slurm's words."""
        if self._cluster != "slurm":
            return str(task.handle.state)
        told = _ask("scontrol", "show", "job", "--oneliner", str(task.handle.job_id)) or ""
        found = re.search(r"JobState=(\w+)", told)
        return found[1] if found else "UNKNOWN"

    def _gone(self, task: _Task) -> None:
        """The job is over and left no word of its own."""
        end = _left(task.job, END)
        if end is not None:
            return self._look(task)
        state, now = self._state(task), time.time()
        where, code = f"{self._cluster}:{task.handle.job_id}", exit_code_left(task.job.out)
        if task.cancelled:
            return self._finish(task, Event(task.job.id, "ended", now, code, "cancelled", where))
        if code is not None:
            return self._finish(task, Event(task.job.id, "ended", now, code, "", where))
        if state in OUR_WORDS:
            return self._finish(task, Event(task.job.id, "ended", now, None, OUR_WORDS[state], where))
        return self._finish(task, Event(task.job.id, "lost", now, None, "node lost", f"{where} {state}"))

    def _begin(self, task: _Task, at: float, where: str) -> None:
        task.started = True
        self._events.append(Event(task.job.id, "started", at, None, "", where))

    def _finish(self, task: _Task, event: Event) -> None:
        if not task.started:
            self._begin(task, event.at, event.where)
        self._events.append(event)
        self._tasks.pop(task.job.id, None)


def engine(
    cluster: str = "slurm", folder: str | None = None, jobs: str = str(ROOM), time: str = "1440", **settings: str
) -> SlurmEngine:
    """`jobs`: most jobs at once. `time`: minutes a job may take. partition, account, qos, ... go to sbatch."""
    if cluster not in ("slurm", "local", "debug"):
        raise InputError(f"the engine option cluster={cluster!r} is none of slurm, local, debug.")
    try:
        room, minutes = int(jobs), int(time)
    except ValueError:
        raise InputError(f"the engine options jobs={jobs!r} and time={time!r} must be whole numbers.") from None
    ours = {name if name.startswith("slurm_") else f"slurm_{name}": value for name, value in settings.items()}
    return SlurmEngine(folder, cluster, room if cluster != "debug" else 1, minutes, ours)
