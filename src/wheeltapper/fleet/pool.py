"""Worker processes on this machine. One that dies costs the unit it was at, which says so, and is replaced."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from wheeltapper.fleet.worker import Outcome, Task, judged

PATIENCE = 1200.0  # seconds for one unit; reading is bounded by CPU time long before
ALONE = 8  # units: so few are judged sooner than a process has started
SOURCE = Path(__file__).resolve().parents[2]


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tasks(tasks: Sequence[Task], workers: int) -> Iterator[Outcome]:
    """The outcome of every task, as they come."""
    if len(tasks) <= ALONE or workers < 1:
        yield from map(judged, tasks)
        return
    todo: queue.SimpleQueue[Task] = queue.SimpleQueue()
    done: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    for task in tasks:
        todo.put(task)
    hands = [_Hand(todo, done) for _ in range(min(workers, len(tasks)))]
    try:
        for hand in hands:
            hand.start()
        for _ in tasks:
            yield done.get()
    finally:
        for hand in hands:
            hand.stop()


class _Hand(threading.Thread):
    """One worker process, and the thread that hands it tasks."""

    def __init__(self, todo: queue.SimpleQueue[Task], done: queue.SimpleQueue[Outcome]) -> None:
        super().__init__(daemon=True)
        self.todo, self.done = todo, done
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                task = self.todo.get_nowait()
            except queue.Empty:
                break
            try:
                self.done.put(self._outcome(task))
            except Exception as error:  # whoever waits for this outcome must get one
                self.done.put(Outcome(task.path, problem=f"no process could read it: {error}"))
        self.stop()

    def stop(self) -> None:
        self.stopped.set()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()  # it holds nothing that is not written elsewhere
        if self.process is not None:
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None and not pipe.closed:
                    with contextlib.suppress(OSError):  # what was not sent to a process that is gone
                        pipe.close()

    def _outcome(self, task: Task) -> Outcome:
        try:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(msgspec.json.encode(task) + b"\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], PATIENCE)[0]:
                process.kill()
                return Outcome(task.path, problem=f"it took more than {PATIENCE / 60:.0f} minutes, and was stopped")
            line = process.stdout.readline()
            if line.endswith(b"\n"):
                return msgspec.json.decode(line, type=Outcome)
        except (OSError, ValueError, msgspec.DecodeError):
            pass  # it died between two tasks or at this one
        code = self.process.wait() if self.process is not None else None
        self.process = None
        return Outcome(task.path, problem=f"the process that read it ended {_how(code)}; the other runs were read")

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
            threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
            environment = {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(paths)}
            # -P: the folder we stand in may hold a module of any name, and nothing that a run left is executed.
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "wheeltapper.fleet.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        return self.process


def _how(code: int | None) -> str:
    if code is None:
        return "before it began"
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"
