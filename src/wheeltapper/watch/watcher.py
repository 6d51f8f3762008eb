"""Looks at live runs: reads what is new, judges the growing record when that is worth its cost, keeps the last answer.

While a run goes on only the signs are asked that may be (LIVE); a curve that is flat so far may still fall. When it has
finished, crashed or gone silent, it is judged like any record.

A diagnosis reads the whole record, so its cost grows with the run. It is made when there are new points and the time
since the last one is at least SHARE times what that one took: watching never takes more than a twentieth of a core.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from wheeltapper.api import audited, judge
from wheeltapper.errors import InputError, WheeltapperError
from wheeltapper.finding import Finding, Unknown
from wheeltapper.judge.model import Diagnosis
from wheeltapper.prognosis.forecast import Forecast
from wheeltapper.prognosis.goal import Goal, reached
from wheeltapper.reading.follow import Follower
from wheeltapper.report.text import clean, duration, num, percent, position
from wheeltapper.run.gather import files_at, read_runs
from wheeltapper.run.model import Run, Series
from wheeltapper.study import Study
from wheeltapper.watch.guard_lines import GuardLines
from wheeltapper.watch.incidents import Incident, Ledger
from wheeltapper.watch.pace import Pace

SHARE = 20.0  # a twentieth of one core
STALE = 1800.0  # half an hour: longer than the validation and the checkpoint of most runs
MOST_RUNS = 200  # shown and judged; a folder of more is an archive, not a set of live runs


class Seen(NamedTuple):
    """How a run stood at an earlier call of the program."""

    written: float  # time of change of its files, by the clock of the machine that holds them
    grown: float  # when it was seen to grow, by ours
    content: tuple[int, ...]
    verdict: str


@dataclass(slots=True)
class Watched:
    """One run under watch: what is known of it now."""

    key: str
    run: Run
    name: str  # of the run; with its folder, where several have the same
    grown: float  # when its record was last seen to grow, by our clock
    pace: Pace = field(default_factory=Pace)
    diagnosis: Diagnosis | None = None
    outlook: Forecast | Unknown | None = None  # of the target's series, else of the main score
    written: float = 0.0  # time of change of its files, only ever compared with itself
    content: tuple[int, ...] = ()  # how much the record holds: points, events, settings
    judged: tuple[int, ...] | None = None  # how much it held when it was judged
    live: bool = True  # was it judged as one that still runs?
    judged_at: float = float("-inf")
    cost: float = 0.0  # seconds of the last diagnosis
    silent: bool = False
    problem: str = ""  # why the last judgement could not be made: a fault of ours
    audit: tuple[object, tuple[Finding, ...]] | None = None

    @property
    def state(self) -> str:
        """running, finished, crashed, silent."""
        if self.over:
            return self.over
        return "silent" if self.silent else "running"

    @property
    def over(self) -> Literal["finished", "crashed", ""]:
        """Has it ended? A traceback that training went on after is no end, so the sign decides, not the words."""
        if self.diagnosis is None:
            return ""
        if any(f.id == "crashed" for f in self.diagnosis.findings):
            return "crashed"
        return "finished" if self.diagnosis.progress.state == "finished" else ""

    @property
    def study(self) -> Study:
        """The study behind the diagnosis; a new one where the record was read again since."""
        held = self.diagnosis.study if self.diagnosis else None
        return held if held is not None and held.run is self.run else Study(self.run)

    @property
    def done(self) -> bool:
        return self.state != "running"

    def seconds_left(self) -> float | None:
        """Time to the planned end at the present pace, where the run goes on and its length is known."""
        progress = self.diagnosis.progress if self.diagnosis else None
        if self.done or progress is None or progress.at is None or progress.total is None:
            return None
        rate = self.pace.rate(self.run, progress.clock)
        return None if not rate else max(0.0, (progress.total - progress.at) / rate)

    def chance(self, goal: Goal) -> tuple[float | None, str]:
        """P(the goal is reached by the end of the forecast), and that in words. None: it cannot be told."""
        met = reached(self.run, goal)
        if met is not None:
            series = self.run.series_named(goal.name)
            return 1.0, f"reached at {position(met, series.clock if series else None)}"
        if not isinstance(self.outlook, Forecast):
            return None, self.outlook.why if isinstance(self.outlook, Unknown) else "not yet known"
        share, by = self.outlook.chance_of_target, self.outlook.at[-1]
        return share, f"{percent(share) if share is not None else '?'} by {position(by, self.outlook.clock)}"

    def status(self, target: Goal | None = None) -> str:
        """One line about the run as it stands."""
        told = self.diagnosis
        parts = [told.verdict.replace("-", " ") if told else clean(self.problem) or "not judged yet", self.state]
        if told and told.progress.at is not None:
            total = told.progress.total
            share = f" of {num(total)} ({100 * told.progress.at / total:.0f} %)" if total else ""
            parts.append(position(told.progress.at, told.progress.clock) + share)
        shown = main_series(self.study)
        parts += [f"{clean(s.name, 40)} {num(float(s.values[-1]))}" for s in shown[:2] if len(s)]
        left = self.seconds_left()
        if left is not None:
            parts.append(f"{duration(left)} left")
        if target is not None:
            parts.append(f"{clean(target.name, 40)} {num(target.value)}: {self.chance(target)[1]}")
        return " · ".join(parts)


def main_series(study: Study) -> list[Series]:
    """The curves to look at first: loss, score, validation loss."""
    found = [study.maybe(name) for name in ("train_loss", "main_metric", "val_loss")]
    chosen = [s for s in found if s is not None] or [s for s in study.run.series.values() if s.quantity][:3]
    return list({s.name: s for s in chosen}.values())


def _with_folder(run: Run, top: Path) -> str:
    """The name of a run below `top` by its path."""
    path = Path(run.root)
    return path.relative_to(top).as_posix() if path.is_relative_to(top) and path != top else run.name


class Watcher:
    """Watches files and folders, which need not exist yet. `look` reads what is new and returns what happened."""

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        *,
        target: Goal | None = None,
        stale: float = STALE,
        ledger: Ledger | None = None,
        seen: Mapping[str, Seen] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.paths = [Path(path) for path in paths]
        self.target = target
        self.stale = stale
        self.ledger = ledger or Ledger()
        self.runs: dict[str, Watched] = {}
        self.waiting: dict[Path, str] = {}  # paths with nothing to read yet, and why
        self.incidents: list[Incident] = []
        self.looks = 0
        self.cost = 0.0  # seconds that reading took at the last look
        self._clock = clock
        self._seen = seen or {}
        self._known = set(self.ledger.to_json()["signs"])
        self._followers = {path: Follower() for path in self.paths}
        self._guards = GuardLines()

    def look(self, *, judge_now: bool = False) -> list[Incident]:
        """One look at every path. `judge_now`: judge whatever has new points, whatever it costs."""
        began, now = time.perf_counter(), self._clock()
        for path in self.paths:
            self._read(path, now)
        self.cost = time.perf_counter() - began
        new = []
        for watched in self.runs.values():
            watched.silent = now - watched.grown >= self.stale
            told = self._guards.news(Path(watched.run.root), watched.key, watched.name, self.ledger, now)
            new += [*told, *self._judge(watched, now, judge_now), *self._alive(watched, now)]
        self.incidents += new
        self.looks += 1
        return new

    @property
    def done(self) -> bool:
        """Is there nothing left to wait for?"""
        return bool(self.runs) and not self.waiting and all(w.done for w in self.runs.values())

    @property
    def verdicts(self) -> list[str]:
        return [w.diagnosis.verdict for w in self.runs.values() if w.diagnosis] or ["cannot-tell"]

    def pause(self, interval: float) -> float:
        """Seconds to wait before the next look: the interval, or longer where a look itself is dear."""
        return interval if self.looks < 2 else max(interval, SHARE * self.cost)  # the first reads all there is

    def seen(self) -> dict[str, Seen]:
        """How the runs stand, for a later call."""
        return {
            key: Seen(w.written, w.grown, w.content, w.diagnosis.verdict if w.diagnosis else "")
            for key, w in self.runs.items()
        }

    def _read(self, path: Path, now: float) -> None:
        """The runs at a path, read on if there is news."""
        follower = self._followers[path]
        mine = [w for key, w in self.runs.items() if key.startswith(f"{path}\n")]
        try:
            if not path.exists():
                raise InputError(f"there is no {path} yet")
            if not follower.look(files_at(path)):
                return
            runs = read_runs(path, read=follower.kept)
        except (WheeltapperError, OSError) as error:
            self.waiting[path] = clean(getattr(error, "what", None) or error)
            return  # what was read before it went away still stands
        self.waiting.pop(path, None)
        found: dict[str, Watched] = {}
        runs = [run for run in runs if run.series] or runs  # settings that lie beside runs are no run to wait for
        names = Counter(run.name for run in runs)
        for run in runs[:MOST_RUNS]:
            key = f"{path}\n{run.root}\n{run.name}"
            written = follower.last_change(Path(file) for file in run.files)
            watched = self.runs.get(key)
            if watched is None:
                # How long it has been silent before we came is told by the file's own time, never in the future.
                before = self._seen.get(key)
                watched = Watched(key, run, run.name, grown=min(now, written) if before is None else now)
                if before is not None and before.written == written:
                    watched.grown = before.grown
            elif written != watched.written:
                watched.grown = now
            watched.run, watched.written = run, written
            watched.name = run.name if names[run.name] == 1 else _with_folder(run, path)
            points = sum(len(s) for s in run.series.values())
            watched.content = (points, len(run.events), len(run.configs), len(run.checkpoints))
            found[key] = watched
        for gone in [w.key for w in mine if w.key not in found]:
            del self.runs[gone]
        self.runs.update(found)

    def _judge(self, watched: Watched, now: float, judge_now: bool) -> list[Incident]:
        if watched.content == watched.judged and not (watched.silent and watched.live):
            return []
        if not judge_now and now - watched.judged_at < SHARE * watched.cost:
            return []
        began = time.perf_counter()
        run, first = watched.run, watched.judged is None and watched.key not in self._known
        basis = (run.scripts, tuple(tree for tree in run.configs))
        if watched.audit is None or watched.audit[0] != basis:
            watched.audit = basis, audited(run)
        try:
            watched.live = not watched.silent
            told = watched.diagnosis = judge(run, audit=watched.audit[1], live=watched.live, goal=self.target)
            if watched.live and watched.over:
                watched.live = False
                told = watched.diagnosis = judge(run, audit=watched.audit[1], goal=self.target)
            watched.outlook = told.prognosis if isinstance(told.prognosis, Forecast | Unknown) else None
            watched.problem = ""
        except Exception as error:  # hours of watching must not end with one faulty rule
            watched.problem = f"this is a bug in Wheeltapper, not in your run: {type(error).__name__}: {error}"
            watched.judged, watched.judged_at = watched.content, now
            return []
        watched.pace.seen(now, told.progress.at)
        watched.judged, watched.judged_at = watched.content, now
        watched.cost = time.perf_counter() - began
        before = self._seen.get(watched.key)
        again = before is not None and before.content == watched.content  # judged at an earlier call already
        out = [] if again else self.ledger.judge(watched.key, told, now, name=watched.name, first=first)
        if self.target is not None and watched.chance(self.target)[0] == 1.0:
            text = f"{clean(self.target.name, 60)} {num(self.target.value)} {watched.chance(self.target)[1]}"
            out += self.ledger.once(watched.key, watched.name, "target", text, now)
        if watched.over == "finished":
            out += self.ledger.once(watched.key, watched.name, "finished", told.progress.text, now)
        elif watched.over == "crashed":
            text = next(f.summary for f in told.findings if f.id == "crashed")
            out += [] if any(i.id == "crashed" for i in out) else self.ledger.once(watched.key, watched.name, "crashed", text, now)
        else:
            self.ledger.unsay(watched.key, "crashed")
        return out

    def _alive(self, watched: Watched, now: float) -> list[Incident]:
        """Does it still write?"""
        name = watched.name
        if watched.over:
            return []
        if watched.silent:
            text = f"nothing was written for {duration(now - watched.grown)}; it ended, hangs, or writes elsewhere"
            return self.ledger.once(watched.key, name, "silent", text, now)
        if self.ledger.unsay(watched.key, "silent"):
            return [Incident(name, "again", "again", "it writes again", now)]
        return []
