"""The engine for one machine: processes in sessions of their own, processors and GPUs leased, nothing left behind.

Four lines of defence against processes that outlive their job: its process group is killed when it ends; the process at
its head adopts what left the group (a daemon) and ends it as well; every process carries the job's mark in its
environment, by which `sweep` finds those that were adopted by nobody (both Linux); and a reaper process kills the groups
still running if this one dies in any way.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wheeltapper.errors import InputError
from wheeltapper.trial.engines import STDOUT_FILE, Event, Job, wrapped

MARK = "WHEELTAPPER_MARK"  # in the environment of every process of a job: the folder it writes to
GRACE = 5.0  # seconds between the request to stop and the order
MEMORY_EVERY = 0.5  # seconds between looks at the memory; a look reads /proc once
MOST_OUTPUT = 256 << 20  # bytes that one job may print; what it prints beyond is dropped
CUT_EVERY = 5.0  # seconds between looks at what was printed
NAP = 0.01  # seconds between looks where the system has no pidfd

Why = Literal["", "timeout", "memory", "cancelled"]

# Reads "+pgid" and "-pgid" lines; when the pipe closes, what is still on the list dies. No import that costs.
REAPER = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)
live = set()
for line in sys.stdin:
    (live.add if line[0] == '+' else live.discard)(int(line[1:]))
for number, pause in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 0.0)):
    for group in live:
        try: os.killpg(group, number)
        except OSError: pass
    time.sleep(pause if live else 0.0)
"""


# The head of a job: runs its command, adopts what it leaves behind, and ends that too. It outlives a request to stop, so
# that the command has the time to obey. No import that costs.
HEAD = """
import ctypes, os, signal, sys
try: ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
except Exception: pass
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)
main = os.fork()
if not main:
    signal.signal(signal.SIGTERM, signal.SIG_DFL); signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv('/bin/sh', ['/bin/sh', '-c', sys.argv[1]])
while True:
    pid, status = os.wait()
    if pid == main: break
def below():
    me, parents = os.getpid(), {}
    for name in os.listdir('/proc'):
        if name.isdecimal():
            try: parents[int(name)] = int(open('/proc/%s/stat' % name).read().rpartition(')')[2].split()[1])
            except (OSError, ValueError, IndexError): pass
    mine = {me}
    for _ in parents:
        more = {p for p, up in parents.items() if up in mine} - mine
        if not more: break
        mine |= more
    return mine - {me}
try:
    while left := below():
        for pid in left:
            try: os.kill(pid, signal.SIGKILL)
            except OSError: pass
        os.wait()
except OSError: pass
code = os.waitstatus_to_exitcode(status)
if code < 0:
    try: signal.signal(-code, signal.SIG_DFL)
    except OSError: pass
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@dataclass(slots=True)
class _Live:
    job: Job
    process: subprocess.Popen[bytes]
    pidfd: int | None
    gpus: dict[str, float]
    deadline: float | None  # monotonic
    why: Why = ""
    kill_at: float | None = None  # monotonic; set once it was asked to stop


@dataclass(slots=True)
class _Room:
    """What the machine has, less what is lent."""

    cpus: float
    gpus: dict[str, float] = field(default_factory=dict)  # device -> free share

    def lease(self, job: Job) -> dict[str, float] | None:
        if job.cpus > self.cpus + 1e-9:
            return None
        taken: dict[str, float] = {}
        need = job.gpus
        for device, free in sorted(self.gpus.items(), key=lambda item: item[1]):
            share = min(1.0, need)
            if need > 1e-9 and free + 1e-9 >= share:
                taken[device] = share
                need -= share
        if need > 1e-9:
            return None
        self.cpus -= job.cpus
        for device, share in taken.items():
            self.gpus[device] -= share
        return taken

    def give_back(self, live: _Live) -> None:
        self.cpus += live.job.cpus
        for device, share in live.gpus.items():
            self.gpus[device] += share


class LocalEngine:
    """See the module. `cpus` and `gpus` default to what this process may use.

    A thread of its own starts and reaps, so that a slot is filled again while the driver reads a record or
    decides. Everything below `# inside` runs on that thread, under the lock.
    """

    name = "local"

    def __init__(self, cpus: float | None = None, gpus: tuple[str, ...] | None = None) -> None:
        self._cpus = float(cpus) if cpus is not None else float(usable_cpus())
        self._devices = visible_gpus() if gpus is None else gpus
        self._room = _Room(self._cpus, dict.fromkeys(self._devices, 1.0))
        self._waiting: deque[Job] = deque()
        self._live: dict[str, _Live] = {}
        self._events: list[Event] = []
        self._marks: set[str] = set()
        self._changed = threading.Condition()
        self._selector = selectors.DefaultSelector()
        self._bell: tuple[int, int] | None = None  # a pipe that wakes the thread
        self._thread: threading.Thread | None = None
        self._closing = False
        self._next_look = 0.0
        self._next_cut = 0.0
        self._host = socket.gethostname()
        self._reaper: subprocess.Popen[bytes] | None = None

    def room(self) -> int:
        """At least one: a job that is larger than the machine is refused by submit."""
        return max(1, int(self._cpus))

    def submit(self, job: Job) -> str:
        if job.cpus > self._cpus + 1e-9 or job.gpus > len(self._devices) + 1e-9:
            raise InputError(
                f"a job needs {job.cpus:g} processors and {job.gpus:g} GPUs; this machine lends {self._cpus:g} and "
                f"{len(self._devices)}.",
                do="Ask for less with --cpus and --gpus.",
            )
        with self._changed:
            self._waiting.append(job)
            if self._thread is None:
                self._bell = os.pipe()
                os.set_blocking(self._bell[1], False)
                self._selector.register(self._bell[0], selectors.EVENT_READ)
                self._thread = threading.Thread(target=self._work, name="wheeltapper-local", daemon=True)
                self._thread.start()
        self._ring()
        return self._host

    def cancel(self, job_id: str) -> None:
        with self._changed:
            for job in self._waiting:
                if job.id == job_id:
                    self._waiting.remove(job)
                    self._events.append(Event(job_id, "ended", time.time(), None, "cancelled", self._host))
                    self._changed.notify_all()
                    return
            if job_id in self._live:
                self._stop(self._live[job_id], "cancelled")
        self._ring()

    def poll(self, timeout: float = 0.0) -> list[Event]:
        with self._changed:
            if not self._events and timeout > 0:
                self._changed.wait_for(lambda: bool(self._events), timeout)
            out, self._events = self._events, []
            return out

    def close(self) -> None:
        if self._thread is not None:
            with self._changed:
                self._closing = True
            self._ring()
            self._thread.join()
            self._thread = None
        if self._bell is not None:
            self._selector.close()
            for end in self._bell:
                os.close(end)
            self._bell = None
        if self._marks:
            sweep(self._marks)
            self._marks.clear()
        if self._reaper is not None and self._reaper.stdin is not None:
            with contextlib.suppress(OSError):
                self._reaper.stdin.close()
            self._reaper.wait()
            self._reaper = None

    def _ring(self) -> None:
        if self._bell is not None:
            with contextlib.suppress(BlockingIOError):  # a full pipe will wake it as well
                os.write(self._bell[1], b"!")

    # ------------------------------------------------------------------ inside

    def _work(self) -> None:
        while True:
            with self._changed:
                if self._closing:
                    while self._waiting:
                        job = self._waiting.popleft()
                        self._events.append(Event(job.id, "ended", time.time(), None, "cancelled", self._host))
                    for live in self._live.values():
                        self._stop(live, "cancelled")
                self._look()
                self._start_waiting()
                if self._events:
                    self._changed.notify_all()
                if self._closing and not self._live:
                    return
                wait = self._soonest() - time.monotonic()
                if any(live.pidfd is None for live in self._live.values()):
                    wait = min(wait, NAP)
            ready = self._selector.select(max(wait, 0.0))
            if self._bell is not None and any(key.fd == self._bell[0] for key, _ in ready):
                os.read(self._bell[0], 4096)

    def _start_waiting(self) -> None:
        """In the order of submission: a large job at the front is not overtaken for ever by small ones."""
        while self._waiting:
            taken = self._room.lease(self._waiting[0])
            if taken is None:
                return
            self._start(self._waiting.popleft(), taken)

    def _start(self, job: Job, gpus: dict[str, float]) -> None:
        env = {**os.environ, **_threads(job), **job.env, MARK: job.out}
        if gpus:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
        live: _Live | None = None
        try:
            with open(Path(job.out) / STDOUT_FILE, "ab") as log:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", HEAD, wrapped(job)],
                    cwd=job.cwd, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                    start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            self._room.give_back(_Live(job, None, None, gpus, None))  # type: ignore[arg-type]
            self._events.append(Event(job.id, "started", time.time(), None, "", self._host))
            where = f"{self._host}: {error.strerror or error}"
            self._events.append(Event(job.id, "ended", time.time(), None, "failed to start", where))
            return
        self._tell_reaper(f"+{process.pid}\n")
        pidfd = None
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                pidfd = os.pidfd_open(process.pid)
        deadline = None if job.timeout is None else time.monotonic() + job.timeout
        live = _Live(job, process, pidfd, gpus, deadline)
        if pidfd is not None:
            self._selector.register(pidfd, selectors.EVENT_READ)
        self._live[job.id] = live
        self._marks.add(job.out)
        self._events.append(Event(job.id, "started", time.time(), None, "", f"{self._host}:{process.pid}"))

    def _look(self) -> None:
        """Who ended, who is over a limit, who did not obey."""
        now = time.monotonic()
        measure = now >= self._next_look and any(live.job.memory for live in self._live.values())
        used = memory_by_session() if measure else {}
        if measure:
            self._next_look = now + MEMORY_EVERY
        if now >= self._next_cut:
            self._next_cut = now + CUT_EVERY
            for live in self._live.values():
                cut_output(Path(live.job.out) / STDOUT_FILE)
        for live in list(self._live.values()):
            pid = live.process.pid
            # WNOWAIT: as long as it is not reaped, its number cannot belong to another group.
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                self._ended(live)
            elif live.kill_at is not None:
                if now >= live.kill_at:
                    _signal_group(pid, signal.SIGKILL)
                    live.kill_at = now + GRACE
            elif live.deadline is not None and now >= live.deadline:
                self._stop(live, "timeout")
            elif live.job.memory is not None and used.get(pid, 0) > live.job.memory:
                # No grace: a process over its memory takes the machine with it.
                live.why, live.kill_at = "memory", now
                _signal_group(pid, signal.SIGKILL)

    def _ended(self, live: _Live) -> None:
        _signal_group(live.process.pid, signal.SIGKILL)
        code = live.process.wait()
        if code == -signal.SIGKILL or live.why:  # the head was killed with its group: nobody has adopted the rest
            sweep({live.job.out})
        self._tell_reaper(f"-{live.process.pid}\n")
        if live.pidfd is not None:
            self._selector.unregister(live.pidfd)
            os.close(live.pidfd)
        del self._live[live.job.id]
        self._room.give_back(live)
        where = f"{self._host}:{live.process.pid}"
        self._events.append(Event(live.job.id, "ended", time.time(), code, live.why, where))

    def _stop(self, live: _Live, why: Why) -> None:
        if live.kill_at is None:
            live.why, live.kill_at = why, time.monotonic() + GRACE
            _signal_group(live.process.pid, signal.SIGTERM)

    def _soonest(self) -> float:
        times = [time.monotonic() + 60.0, *([self._next_cut] if self._live else [])]
        for live in self._live.values():
            times += [t for t in (live.kill_at or live.deadline,) if t is not None]
            if live.job.memory is not None:
                times.append(self._next_look)
        return min(times)

    def _tell_reaper(self, line: str) -> None:
        if self._reaper is None:
            self._reaper = subprocess.Popen(
                [sys.executable, "-I", "-S", "-u", "-c", REAPER],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        if self._reaper.stdin is not None:
            with contextlib.suppress(OSError):
                self._reaper.stdin.write(line.encode())
                self._reaper.stdin.flush()


def cut_output(file: Path) -> None:
    """Keep what a job printed below a limit. It appends, so that it goes on after the cut."""
    with contextlib.suppress(OSError):
        if file.stat().st_size > MOST_OUTPUT:
            os.truncate(file, MOST_OUTPUT - MOST_OUTPUT // 4)
            with file.open("ab") as log:
                log.write(b"\n[wheeltapper: this job printed too much; a part is left out here]\n")


def usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _threads(job: Job) -> dict[str, str]:
    """As many threads as processors leased, unless the user says otherwise."""
    count = str(max(1, int(job.cpus)))
    return {name: count for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if name not in os.environ}


def visible_gpus() -> tuple[str, ...]:
    """The GPUs this process may use, by what it was given, else by what the driver lists."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return tuple(part.strip() for part in given.split(",") if part.strip() not in ("", "-1"))
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(str(i) for i, line in enumerate(x for x in listed.splitlines() if x.startswith("GPU ")))


def memory_by_session() -> dict[int, int]:
    """Bytes of resident memory of each session (Linux; empty elsewhere)."""
    page = os.sysconf("SC_PAGE_SIZE")
    used: dict[int, int] = {}
    for entry in _process_folders():
        with contextlib.suppress(OSError, IndexError, ValueError):
            # The name in brackets may hold anything, so count from its end: state, ppid, pgrp, session, ..., rss.
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            used[int(fields[3])] = used.get(int(fields[3]), 0) + page * int(fields[21])
    return used


def sweep(marks: set[str], *, below: str | None = None) -> int:
    """Kill every process marked with one of these folders, or with any folder below `below`. Gives how many."""
    killed = 0
    for entry in _process_folders():
        with contextlib.suppress(OSError):
            for item in (entry / "environ").read_bytes().split(b"\0"):
                name, _, value = item.partition(b"=")
                if name == MARK.encode():
                    folder = os.fsdecode(value)
                    if folder in marks or (below is not None and Path(folder).is_relative_to(below)):
                        os.kill(int(entry.name), signal.SIGKILL)
                        killed += 1
    return killed


def _process_folders() -> list[Path]:
    home, own = Path("/proc"), str(os.getpid())
    return [e for e in home.iterdir() if e.name.isdecimal() and e.name != own] if home.is_dir() else []


def engine(cpus: str | None = None, gpus: str | None = None) -> LocalEngine:
    """`cpus`: how many processors to lend in all. `gpus`: which devices, "0,1"; "" for none."""
    devices = None if gpus is None else tuple(part.strip() for part in gpus.split(",") if part.strip())
    try:
        return LocalEngine(None if cpus is None else float(cpus), devices)
    except ValueError:
        raise InputError(f"the engine option cpus={cpus!r} is not a number.") from None
