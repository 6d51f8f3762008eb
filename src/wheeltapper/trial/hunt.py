"""Runs a search (search.py) on an engine, with the same ledger as a trial: what ran once is not run again."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import socket
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wheeltapper import __version__
from wheeltapper.errors import InputError
from wheeltapper.finding import Edit
from wheeltapper.run.gather import read_runs
from wheeltapper.trial import search
from wheeltapper.trial.driver import tail_of
from wheeltapper.trial.engines import Engine, Job, exit_code_left
from wheeltapper.trial.git import git
from wheeltapper.trial.ledger import Attempt, Ledger, books_of, fold, outcome_record
from wheeltapper.trial.measure import measure
from wheeltapper.trial.model import Outcome
from wheeltapper.trial.plan import TrialPlan, plan_object, save_plan
from wheeltapper.trial.protocol import Setting, clear_copy, prepare
from wheeltapper.trial.sequential import sprt_broke

SEEDS = 7  # of one question at most; Wald's test needs 2 where the answer is clear
ENDS = 2  # seeds of the good and of the bad end, which must differ
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to."""

    culprits: tuple[str, ...]
    text: str
    questions: int
    runs: int


class Hunt:
    """One session of a search."""

    def __init__(self, plan: TrialPlan, folder: Path, ledger: Ledger, engine: Engine, say: Say) -> None:
        self.plan, self.folder, self.ledger, self.engine, self.say = plan, folder, ledger, engine, say
        self.books = books_of(ledger.records)
        runs = read_runs(plan.run)
        self.run = next((r for r in runs if r.name == plan.name), runs[0])
        self.middle: float | None = None  # of the endpoint, between the good and the bad end
        self.questions = 0

    def begin(self) -> None:
        if not self.ledger.records:
            save_plan(self.plan, self.folder)
            self._tell("plan", plan=plan_object(self.plan))
        self._tell("session", pid=os.getpid(), host=socket.gethostname(), version=__version__, engine=self.engine.name)
        for attempt in list(self.books.open.values()):
            if exit_code_left(attempt.out) is None:
                self._tell("lost", job=attempt.job, why="the driver was gone")
            else:
                self._settle(attempt, exit_code_left(attempt.out), None)

    def _tell(self, kind: str, **content: object) -> None:
        fold(self.books, self.ledger.add(kind, **content))

    # ------------------------------------------------------------------ one question

    def outcomes(self, arm: str, many: int, edits: tuple[Edit, ...] = (), commit: str | None = None) -> list[Outcome]:
        """Outcomes of the first `many` seeds of an arm; those in the ledger are not run again."""
        seeds = [self.plan.seeds[0] + i for i in range(many)]
        known = self.books.outcomes.get(arm, {})
        waiting: dict[str, Attempt] = {}
        started: dict[str, float] = {}
        for seed in seeds:
            if seed not in known and (arm, seed) not in self.books.failed:
                job, attempt = self._job(arm, seed, edits, commit)
                self._tell("submitted", job=job.id, arm=arm, seed=seed, attempt=attempt.number, out=attempt.out, command=job.command)  # fmt: skip
                waiting[job.id] = attempt
                self.engine.submit(job)
        while waiting:
            for event in self.engine.poll(1.0):
                if event.kind == "started":
                    started[event.id] = event.at
                elif event.id in waiting:
                    attempt = waiting.pop(event.id)
                    seconds = event.at - started[event.id] if event.id in started else None
                    self._settle(attempt, event.code if event.kind == "ended" else None, seconds)
                    if commit is not None:
                        _drop_tree(Path(attempt.out), Path(self.plan.command.cwd))
        found = self.books.outcomes.get(arm, {})
        return [found[seed] for seed in seeds if seed in found]

    def _job(self, arm: str, seed: int, edits: tuple[Edit, ...], commit: str | None) -> tuple[Job, Attempt]:
        plan = self.plan
        number = self.books.tries.get((arm, seed), 0) + 1
        name = f"s{seed}" if number == 1 else f"s{seed}.try{number}"
        folder = self.folder / "arms" / arm / name
        folder.mkdir(parents=True, exist_ok=True)
        command = plan.command
        if commit is not None:
            cwd = _add_tree(folder, Path(command.cwd), commit)
            command = replace(command, cwd=str(cwd), isolated=False)
        span = plan.length - plan.fork.step
        setting = Setting(seed, span, None, plan.fork.path, edits, plan.knobs)
        job = prepare(command, setting, f"{arm}-{name}", folder, self.run, plan.knobs)
        return job, Attempt(job.id, arm, seed, number, str(folder))

    def _settle(self, attempt: Attempt, code: int | None, seconds: float | None) -> None:
        plan = self.plan
        outcome = measure(
            Path(attempt.out), plan.rule, attempt.seed, plan.clock, plan.length, crashed=code != 0, whole=plan.whole
        )  # fmt: skip
        usable = outcome.broke is not None or (code == 0 and outcome.value is not None)
        if usable:
            self._tell("ended", job=attempt.job, code=code, why="", seconds=seconds, outcome=outcome_record(outcome))
        else:
            self._tell(
                "ended", job=attempt.job, code=code, why="", seconds=seconds, failed=True, note=outcome.note,
                tail=tail_of(attempt.out),
            )  # fmt: skip
        clear_copy(Path(attempt.out))

    def broke(self, outcome: Outcome) -> bool | None:
        """By the symptom; where there is none, by which end the endpoint is nearer to."""
        if self.plan.rule.symptom and self.plan.rule.kind == "symptom":
            return outcome.broke
        if outcome.value is None or self.middle is None:
            return None
        if not math.isfinite(outcome.value):
            return True
        return outcome.value < self.middle if self.plan.rule.better == "up" else outcome.value > self.middle

    def breaks(self, arm: str, edits: tuple[Edit, ...] = (), commit: str | None = None) -> bool:
        """Whether a setting breaks: seeds are added until Wald's test says so."""
        self.questions += 1
        for many in range(2, SEEDS + 1):
            told = [b for o in self.outcomes(arm, many, edits, commit) if (b := self.broke(o)) is not None]
            answer = sprt_broke(told)
            if answer.answer != "go on":
                self.say(f"{arm}: {'breaks' if answer.answer == 'yes' else 'holds'} ({sum(told)} of {len(told)} runs)")
                return answer.answer == "yes"
        self.say(
            f"{arm}: {sum(told)} of {len(told)} runs break; taken for {'broken' if 2 * sum(told) > len(told) else 'sound'}"
        )
        return 2 * sum(told) > len(told)

    def ends(
        self, bad: tuple[str, tuple[Edit, ...], str | None], good: tuple[str, tuple[Edit, ...], str | None]
    ) -> None:
        """The bad end must break and the good one hold, or there is nothing to look for."""
        sides = []
        for arm, edits, commit in (bad, good):
            values = [o.value for o in self.outcomes(arm, ENDS, edits, commit) if o.value is not None]
            sides.append(statistics.fmean(values) if values and all(map(math.isfinite, values)) else math.nan)
        if math.isfinite(sides[0]) and math.isfinite(sides[1]):
            self.middle = (sides[0] + sides[1]) / 2
        elif math.isfinite(sides[1]):
            self.middle = math.inf if self.plan.rule.better == "down" else -math.inf
        worse = sides[0] < sides[1] if self.plan.rule.better == "up" else sides[0] > sides[1]
        if self.plan.rule.kind == "difference" and math.isfinite(sides[0]) and not worse:
            raise InputError(
                f"the bad end is no worse in {self.plan.rule.metric} than the good one ({sides[0]:g}, {sides[1]:g})."
            )
        if not self.breaks(*bad):
            raise InputError("the bad end does not break when it is run again.", do="Then no difference can be blamed.")
        if self.breaks(*good):
            raise InputError("the good end breaks as well: the cause is not among these differences.")

    def close(self, culprits: Sequence[str], text: str) -> Found:
        runs = sum(len(by) for by in self.books.outcomes.values())
        self._tell("closed", why=text, seconds=self.books.seconds, culprits=list(culprits))
        return Found(tuple(culprits), text, self.questions, runs)


def hunt_settings(
    plan: TrialPlan, edits: tuple[Edit, ...], folder: Path, engine: Engine, say: Say = lambda _line: None
) -> Found:
    """Delta debugging: the smallest set of differences that still breaks (`edits` turn the bad run into the good)."""
    with Ledger(folder) as ledger:
        try:
            hunt = Hunt(plan, folder.resolve(), ledger, engine, say)
            hunt.begin()
            hunt.ends((_name(edits, edits), (), None), (_name(edits, ()), edits, None))

            def fails(kept: tuple[Edit, ...]) -> bool:
                return hunt.breaks(_name(edits, kept), search.inverse(edits, kept))

            left = search.ddmin(edits, fails)
            many = f"out of {len(edits)} that differ, after {hunt.questions} questions"
            text = f"what breaks it: {search.words(left)}; {many}"
            return hunt.close([edit.knob for edit in left], text)
        finally:
            engine.close()


def _name(edits: Sequence[Edit], kept: Sequence[Edit]) -> str:
    """A folder name for a set of settings left as they are in the bad run."""
    if len(kept) == len(edits):
        return "bad"
    if not kept:
        return "good"
    text = "+".join(edit.knob for edit in kept)
    return f"bad-{text}" if len(text) < 80 else f"bad-{len(kept)}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def hunt_commit(
    plan: TrialPlan, good: str, commits: Sequence[str], folder: Path, engine: Engine, say: Say = lambda _line: None
) -> Found:
    """Bisection over commits: the first that breaks the run, each in a work tree of its own."""
    with Ledger(folder) as ledger:
        try:
            hunt = Hunt(plan, folder.resolve(), ledger, engine, say)
            hunt.begin()
            hunt.ends((commits[-1][:12], (), commits[-1]), (good[:12], (), good))

            def broke(at: int, time: int) -> bool | None:
                arm = commits[at][:12]
                told = hunt.outcomes(arm, time + 1, commit=commits[at])
                answer = hunt.broke(told[time]) if len(told) > time else None
                hunt.questions += 1
                say(f"{arm}: {'could not be run' if answer is None else 'breaks' if answer else 'holds'}")
                return answer

            suspect = search.bisect(len(commits), broke)
            subject = git(Path(plan.command.cwd), "log", "-1", "--format=%h %s", commits[suspect.at]).strip()
            sure = f"{suspect.probability:.0%} sure after {suspect.runs} runs over {len(commits)} commits"
            known = suspect.probability >= search.SURE
            text = (
                f"the first commit that breaks it: {subject} ({sure})"
                if known
                else f"not found: {subject} leads ({sure})"
            )
            return hunt.close([commits[suspect.at]] if known else [], text)
        finally:
            engine.close()


def _add_tree(folder: Path, cwd: Path, commit: str) -> Path:
    """A work tree of a commit; gives the folder in it that `cwd` is in the checkout."""
    top = Path(git(cwd, "rev-parse", "--show-toplevel").strip())
    tree = folder / "work"
    if tree.exists():
        _drop_tree(folder, cwd)
    git(cwd, "worktree", "add", "--force", "--detach", str(tree), commit)
    return tree / cwd.resolve().relative_to(top.resolve())


def _drop_tree(folder: Path, cwd: Path) -> None:
    shutil.rmtree(folder / "work", ignore_errors=True)
    git(cwd, "worktree", "prune")
