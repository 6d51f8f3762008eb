"""Runs a plan on an engine: submits repeats, reads along, decides after each, and can be killed at any moment.

Nothing is kept in memory that the ledger does not know: a driver that starts on an old ledger goes on where the
last one stopped. A repeat that ended is never run again; one that was under way is run again in a new folder.
"""

from __future__ import annotations

import os
import shlex
import socket
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wheeltapper import __version__
from wheeltapper.errors import InputError
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run
from wheeltapper.trial import CONFIG
from wheeltapper.trial.engines import STDOUT_FILE, Engine, Event, exit_code_left
from wheeltapper.trial.judge import in_order, one_seed, rung_of, seed_does_nothing, verdicts_now
from wheeltapper.trial.ledger import (
    LEDGER_FILE,
    Attempt,
    Books,
    Ledger,
    books_of,
    fold,
    hash_of,
    outcome_record,
    verdict_record,
)  # fmt: skip
from wheeltapper.trial.measure import beyond_recovery, look, measure
from wheeltapper.trial.model import Arm, Verdict
from wheeltapper.trial.plan import TrialPlan, plan_object, save_plan
from wheeltapper.trial.protocol import Command, Setting, clear_copy, prepare
from wheeltapper.trial.read import WHICH_FOLDER, plan_in
from wheeltapper.trial.schedule import next_repeat, undecided

ATTEMPTS = 3  # of one repeat, where the machine and not the training is at fault
FAILURES = 2  # repeats of an arm that end without an outcome before it is given up
LEAST_TIMEOUT = 300.0  # seconds: below, a slow start of the machine would look like a hang
KILLED = {-9, -15, 137, 143}  # exit codes of KILL and TERM, as they are and as a shell tells them
HUNG = 10.0  # times as long as the control took: it hangs
LOOK_SHARE = 0.01  # of the driver's time goes into reading along
LOOK_EVERY = 1.0  # seconds at least between two looks at one repeat


@dataclass(frozen=True, slots=True)
class Row:
    """One repeat, for a bar on the screen."""

    arm: str
    seed: int
    state: str  # waits · runs · done · failed · stopped
    share: float
    note: str = ""


Show = Callable[[Sequence[Row], Books], None]


@dataclass(slots=True)
class _Live:
    """What this process knows of an attempt under way; all of it can be lost."""

    attempt: Attempt
    started: float | None = None  # time.time() of the start
    position: float = 0.0
    next_look: float = 0.0
    ending: str = ""  # why we ended it ourselves: "length", "gone", "decided"


def start_trial(plan: TrialPlan, folder: Path, engine: Engine, *, show: Show | None = None) -> Books:
    """Begin a trial in a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with Ledger(folder) as ledger:
        if ledger.records:
            raise InputError(
                f"{folder} holds a trial already.",
                do=f"Go on with it: wheeltapper trial resume {shlex.quote(str(folder))}",
            )
        save_plan(plan, folder)
        ledger.add("plan", plan=plan_object(plan))
        return Driver(plan, folder.resolve(), ledger, engine, show).run()


def resume_trial(folder: Path, engine: Engine, *, budget: float | None = None, show: Show | None = None) -> Books:
    """Go on with a trial: finished repeats count, what was under way is done again. `budget` replaces the old one."""
    if not (folder / LEDGER_FILE).is_file():
        raise InputError(f"{folder} holds no trial.", do=WHICH_FOLDER)
    with Ledger(folder) as ledger:
        plan = plan_in(ledger.records, folder)
        plan = plan if budget is None else replace(plan, budget=budget)
        if not plan.tried:
            raise InputError(f"{folder} holds a search.", do="Give its command again: what has run is not run again.")
        _unchanged(plan)
        return Driver(plan, folder.resolve(), ledger, engine, show).run()


def _unchanged(plan: TrialPlan) -> None:
    """Repeats before and after an edit of code or config are not repeats of one thing."""
    for kind in ("config", "code"):
        for file, known in plan.hashes.get(kind, {}).items():
            if known is not None and hash_of(file) != known:
                raise InputError(
                    f"{file} has changed since the trial began.",
                    do="Put it back, or begin another trial: what ran before and after cannot be compared.",
                )


class Driver:
    """One session of work on a trial."""

    def __init__(self, plan: TrialPlan, folder: Path, ledger: Ledger, engine: Engine, show: Show | None) -> None:
        self.plan, self.folder, self.ledger, self.engine, self.show = plan, folder, ledger, engine, show
        self.books = books_of(ledger.records)
        self.live: dict[str, _Live] = {}
        self.durations = [
            took
            for r in ledger.records
            if r["kind"] == "ended"
            and r.get("outcome")
            and (took := self._whole(r.get("seconds"), r["outcome"]["steps"]))
        ]
        self.over = ""  # why nothing more is submitted
        self._run: Run | None = None
        self._shown = 0.0

    # ------------------------------------------------------------------ the loop

    def run(self) -> Books:
        try:
            self._tell(
                "session", pid=os.getpid(), host=socket.gethostname(), version=__version__, engine=self.engine.name
            )
            self._recover()
            self._decide()
            while True:
                self._submit()
                if not self.books.open:
                    break
                for event in self.engine.poll(self._patience()):
                    self._handle(event)
                self._read_along()
                self._draw()
            self._close()
            self._draw(force=True)
        finally:
            self.engine.close()
        return self.books

    def _tell(self, kind: str, **content: object) -> None:
        """Into the ledger first, and from there into the books: the books never know more than the ledger."""
        fold(self.books, self.ledger.add(kind, **content))

    def _recover(self) -> None:
        """Attempts that the last session left open: those that ended by themselves count, the others are lost."""
        if not self.books.open:
            return
        from wheeltapper.trial.engines.local import sweep

        sweep(set(), below=str(self.folder))
        for attempt in list(self.books.open.values()):
            code = exit_code_left(attempt.out)
            if code is not None:
                self._settle(attempt, code, "", None, recovered=True)
            else:
                self._tell("lost", job=attempt.job, why="the driver was gone")
                clear_copy(Path(attempt.out))

    # ------------------------------------------------------------------ what to run next

    def _submit(self) -> None:
        """Keep the engine fed a little ahead, so that no slot waits while a record is read."""
        while not self.over and len(self.books.open) < 2 * self.engine.room():
            chosen = next_repeat(self.plan, self.books)
            if chosen is None or not self._affordable():
                return
            self._send(*chosen)

    def _affordable(self) -> bool:
        """Within the budget, counting what runs and what this repeat will take."""
        budget = self.plan.budget
        if budget is None:
            return True
        if not self.durations:
            # One run shows what a run costs; the record's own clock may be another machine's.
            return not self.books.open
        each = statistics.median(self.durations)
        if self.books.seconds + each * (len(self.books.open) + 1) <= budget:
            return True
        if not self.books.open:
            self.over = "the budget is spent"
        return False

    def _send(self, arm: Arm, seed: int) -> None:
        number = self.books.tries.get((arm.id, seed), 0) + 1
        name = f"s{seed}" if number == 1 else f"s{seed}.try{number}"
        folder = self.folder / "arms" / arm.id / name
        job = prepare(self._command(), self._setting(arm, seed), f"{arm.id}-{name}", folder, self._source(), self.plan.knobs)
        attempt = Attempt(job.id, arm.id, seed, number, str(folder))
        # Written before it is started: what is not in the ledger has not been started.
        self._tell(
            "submitted", job=job.id, arm=arm.id, seed=seed, attempt=number, out=str(folder), command=job.command,
            config=hash_of(Path(job.cwd) / job.env[CONFIG]) if CONFIG in job.env else None,
        )  # fmt: skip
        self.live[job.id] = _Live(attempt)
        self.engine.submit(job)

    def _whole(self, seconds: float | None, steps: float) -> float | None:
        """What a run of the planned length takes, from one that may have broken or been stopped before."""
        reached, span = steps - self.plan.fork.step, self.plan.length - self.plan.fork.step
        return None if not seconds or reached <= 0 else seconds * max(1.0, span / reached)

    def _command(self) -> Command:
        command = self.plan.command
        if command.timeout is None and self.durations:
            command = replace(command, timeout=max(LEAST_TIMEOUT, HUNG * statistics.median(self.durations)))
        if self.plan.budget is not None:
            left = max(self.plan.budget - self.books.seconds, 1.0)
            command = replace(command, timeout=min(left, command.timeout or left))
        return command

    def _setting(self, arm: Arm, seed: int) -> Setting:
        plan = self.plan
        span = plan.length - plan.fork.step
        steps = span if plan.clock != "epoch" else span * plan.per_epoch if plan.per_epoch else None
        epochs = span if plan.clock == "epoch" else span / plan.per_epoch if plan.per_epoch else None
        return Setting(seed, steps, epochs, plan.fork.path, arm.edits, plan.knobs, arm.files)

    def _source(self) -> Run:
        """The run that is tried, for its settings and scripts; read once."""
        if self._run is None:
            runs = read_runs(self.plan.run)
            self._run = next((r for r in runs if r.name == self.plan.name), runs[0])
        return self._run

    # ------------------------------------------------------------------ what happened

    def _handle(self, event: Event) -> None:
        live = self.live.get(event.id)
        if live is None:
            return
        if event.kind == "started":
            live.started = event.at
            self.ledger.add("started", job=event.id, where=event.where)
            return
        del self.live[event.id]
        seconds = None if live.started is None else event.at - live.started
        if event.kind == "lost":
            self._lost(live.attempt, event.why or "lost", seconds)
        elif live.ending == "decided" or (event.why == "cancelled" and not live.ending):
            self._tell("lost", job=event.id, why=live.ending or "cancelled", seconds=seconds)
            clear_copy(Path(live.attempt.out))
        else:
            self._settle(live.attempt, event.code, event.why, seconds, ending=live.ending, where=event.where)
            self._decide()

    def _lost(self, attempt: Attempt, why: str, seconds: float | None) -> None:
        gone = attempt.number >= ATTEMPTS
        self._tell("lost", job=attempt.job, why=why, seconds=seconds, failed=gone)
        clear_copy(Path(attempt.out))
        if gone:
            self._give_up_on(attempt.arm)

    def _settle(
        self, attempt: Attempt, code: int | None, why: str, seconds: float | None, *, ending: str = "",
        recovered: bool = False, where: str = "",
    ) -> None:  # fmt: skip
        """Read the outcome of a repeat that ended and write it down; from then on it is counted."""
        plan = self.plan
        ended_well = code == 0 or bool(ending)
        upto = plan.length if plan.cut else None
        outcome = measure(
            Path(attempt.out), plan.rule, attempt.seed, plan.clock, upto, crashed=not ended_well, whole=plan.whole
        )  # fmt: skip
        whole = outcome.steps >= plan.length or ended_well
        if code in KILLED and not why and not whole and attempt.number < ATTEMPTS:
            # Somebody else ended it (the system short of memory, an administrator): that says nothing about the arm.
            self._lost(attempt, f"killed from outside ({code})", seconds)
            return
        usable = outcome.broke is True or (whole and (outcome.value is not None or outcome.broke is not None))
        told = {"job": attempt.job, "code": code, "why": ending or why, "seconds": seconds, "where": where}
        if recovered:
            told["recovered"] = True
        if usable:
            if took := self._whole(seconds, outcome.steps):
                self.durations.append(took)
            self._tell("ended", **told, outcome=outcome_record(outcome))
            clear_copy(Path(attempt.out))
            return
        self._tell("ended", **told, failed=True, note=outcome.note, tail=tail_of(attempt.out))
        self._give_up_on(attempt.arm)

    def _give_up_on(self, arm: str) -> None:
        failures, counted = self.books.failures.get(arm, 0), len(self.books.outcomes.get(arm, {}))
        if arm == "control" and not counted:
            self._stop("the control does not run: nothing can be compared with it")
        elif failures >= FAILURES and failures > counted and arm not in self.books.abandoned:
            self._tell("abandoned", arm=arm, why=f"{failures} of its repeats ended without an outcome")
            if arm == "control":
                self._stop("the control fails more often than it runs")

    def _read_along(self) -> None:
        """Look into the records of what is running: cut at the planned length, stop what is beyond recovery."""
        now = time.monotonic()
        for live in list(self.live.values()):
            if live.started is None or live.ending or now < live.next_look:
                continue
            if live.next_look == 0.0:
                live.next_look = now + LOOK_EVERY
                continue
            began = time.monotonic()
            reading = look(Path(live.attempt.out), self.plan.rule.metric, self.plan.clock)
            live.position = reading.position
            cost = time.monotonic() - began
            live.next_look = time.monotonic() + max(LOOK_EVERY, cost / LOOK_SHARE)
            if self.plan.cut and reading.position > self.plan.length:
                live.ending = "length"
            elif self.plan.rule.kind == "symptom" and reading.run is not None and beyond_recovery(reading.run):
                live.ending = "gone"
            if live.ending:
                self.engine.cancel(live.attempt.job)

    # ------------------------------------------------------------------ what it means

    def _decide(self) -> None:
        plan, books = self.plan, self.books
        control = in_order(books.outcomes.get("control", {}))
        if not control or self.over:
            return
        if seed_does_nothing(control):
            self._stop("two seeds gave the same run to the last bit: the seed does not reach the training")
            for arm in undecided(plan, books):
                self._tell("verdict", arm=arm.id, verdict=verdict_record(Verdict("cannot-tell", one_seed(plan))))
            return
        told = [o.broke for o in control if o.broke is not None]
        if plan.rule.symptom and len(told) >= 2 and not any(told) and len(told) == len(control):
            self._stop("the control does not show the symptom again: nothing can be concluded")
        for name, verdict in verdicts_now(plan, books).items():
            known = books.verdicts.get(name)
            if known is not None and known.answer != "cannot-tell":
                continue  # decided once: more repeats were not bought to look again
            if known != verdict:
                self._tell("verdict", arm=name, verdict=verdict_record(verdict))
            if verdict.answer != "cannot-tell":
                self._free(name)
        if not undecided(plan, books):
            self._stop("every arm is decided")

    def _free(self, arm: str) -> None:
        """An arm is decided: what still runs of it is stopped, and its share goes to the others."""
        for live in self.live.values():
            if live.attempt.arm == arm and not live.ending:
                live.ending = "decided"
                self.engine.cancel(live.attempt.job)

    def _stop(self, why: str) -> None:
        """Submit nothing more, and end what runs."""
        self.over = self.over or why
        for live in self.live.values():
            if not live.ending:
                live.ending = "decided"
                self.engine.cancel(live.attempt.job)

    def _close(self) -> None:
        """The last word on each arm: its verdict with the rung of the ladder that was reached."""
        for arm in self.plan.tried:
            verdict = self.books.verdicts.get(arm.id)
            if verdict is not None:
                rung = rung_of(self.plan, self.books, self.ledger.records, arm, verdict)
                if rung != verdict.rung:
                    self._tell("verdict", arm=arm.id, verdict=verdict_record(replace(verdict, rung=rung)))
            elif arm.id not in self.books.abandoned and not arm.after:
                self._tell("abandoned", arm=arm.id, why=self.over or "nothing came out of it")
        self._tell("closed", why=self.over or "the planned repeats are done", seconds=self.books.seconds)

    # ------------------------------------------------------------------ seen from outside

    def _patience(self) -> float:
        soonest = min((live.next_look for live in self.live.values() if live.next_look), default=0.0)
        wait = soonest - time.monotonic() if soonest else LOOK_EVERY
        return min(max(wait, 0.02), 0.25 if self.show else LOOK_EVERY)

    def _draw(self, *, force: bool = False) -> None:
        now = time.monotonic()
        if self.show is None or (now - self._shown < 0.2 and not force):
            return
        self._shown = now
        span = max(self.plan.length - self.plan.fork.step, 1e-9)
        rows = []
        for live in self.live.values():
            share = min(1.0, max(0.0, (live.position - self.plan.fork.step) / span))
            rows.append(Row(live.attempt.arm, live.attempt.seed, "waits" if live.started is None else "runs", share))
        self.show(rows, self.books)


def tail_of(out: str, most: int = 2000) -> str:
    """The end of what a job printed."""
    try:
        with (Path(out) / STDOUT_FILE).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            data = file.read(most)
    except OSError:
        return ""
    return data.decode("utf-8", errors="replace")
