"""The same signs and causes as offline, asked of the run as it grows.

The guard's records become a Run with the names that a log would have; the signs that need no hindsight are asked of it
on a schedule, and each one that speaks raises one Incident, with its evidence and the likeliest cause.

What it costs is bounded twice. The history holds at most ROWS steps: when it is full, every second one is dropped and
from then on every second one is taken, so a long run is seen evenly, at a coarser grain. And questions are asked at
growing distances, never more often than keeps their time below `share` of the training's. They run in a thread of
their own by default; what they found is reported from the training's thread, at its next step.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wheeltapper.finding import Finding
from wheeltapper.guard.record import Incident, StepRecord

log = logging.getLogger("wheeltapper.guard")

ROWS = 8192  # steps kept; the signs block longer series to a few hundred medians anyway
FIRST = 20  # steps before the first question: no sign says anything of fewer rows
GROWTH, LONGEST = 0.1, 500  # the next question comes when the run is a tenth longer, or 500 steps
# A sign that spoke once, at one length of the run, may take it back at the next (a spike that recovers, a level that
# noise imitates): it must speak at two questions in a row. LOG.md has what that costs in delay and saves in alarms.
TWICE = 2
# And not before the run has 256 steps, the length that the guard's own bands learn from. Losses of single batches are
# quieter at the start than later, which looks like a rise: of 37 healthy trainings 3 seemed to diverge at some question
# below 84 steps, up to five times in a row, and none above (LOG.md, 2026-11-16). What is arithmetic is told at once.
SURE = 256
# What the guard has seen for itself at the step, the signs need not find again.
ALREADY = {"not-finite": ("nonfinite", "nonfinite-loss")}
# The names of a log, so that the table of names gives them their meaning.
COLUMNS: tuple[tuple[str, Callable[[StepRecord], float]], ...] = (
    ("loss", lambda r: r.loss if r.micro else math.nan),
    ("grad_norm", lambda r: r.grad_norm),
    ("lr", lambda r: r.lr[0] if r.lr else math.nan),
    ("loss_scale", lambda r: r.scale),
    ("step_time", lambda r: r.step_s),
    ("data_time", lambda r: r.data_s),
)


class History:
    """What happened, as columns of numbers, thinned evenly when there is too much of it."""

    def __init__(self, rows: int = ROWS) -> None:
        self.limit = rows
        self.stride = 1
        self.seen = 0
        self.at: list[float] = []
        self._counts: list[int] = []
        self.columns: dict[str, list[float]] = {name: [] for name, _ in COLUMNS}
        self.metrics: dict[str, list[tuple[float, float]]] = {}

    def add(self, record: StepRecord) -> None:
        # A step that is not finite is data of its own: it is kept whatever the grain.
        strange = not math.isfinite(record.loss) and record.micro > 0
        self.seen += 1
        if self.seen % self.stride and not strange:
            return
        self._counts.append(self.seen)
        self.at.append(float(record.step))
        for name, value in COLUMNS:
            self.columns[name].append(value(record))
        if len(self.at) > self.limit:
            self._thin()

    def _thin(self) -> None:
        self.stride *= 2
        losses = self.columns["loss"]
        even = [i for i, count in enumerate(self._counts) if count % self.stride == 0]
        strange = [i for i in range(len(self.at)) if not math.isfinite(losses[i])]
        # A run that is nothing but strange steps must be thinned too.
        keep = sorted({*even, *strange}) if len(strange) < self.limit // 4 else even
        self._counts = [self._counts[i] for i in keep]
        self.at = [self.at[i] for i in keep]
        self.columns = {name: [values[i] for i in keep] for name, values in self.columns.items()}

    def metric(self, step: float, values: Mapping[str, Any]) -> None:
        """What an evaluation found. Names are read as in a log: "val/loss", "eval_accuracy"."""
        for name, value in values.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                points = self.metrics.setdefault(name, [])
                if len(points) < self.limit:
                    points.append((step, float(value)))

    def run(self, *, name: str, facts: Mapping[str, Any], config: str | None) -> Any:
        """A Run of what is kept. Columns that were never measured are left out."""
        from wheeltapper.reading.record import Fact, Points, Reading
        from wheeltapper.run.merge import merge
        from wheeltapper.settings.parse import parse_text

        points = []
        at = np.asarray(self.at, dtype=np.float64)
        lines = np.arange(1, len(at) + 1, dtype=np.int64)
        for column, listed in self.columns.items():
            values = np.asarray(listed, dtype=np.float64)
            if column == "loss" or np.isfinite(values).any():
                measured = slice(None) if column in ("loss", "grad_norm") else np.isfinite(values)
                points.append(
                    Points(
                        column, values[measured].copy(), at[measured].copy(), "step", "guard", lines[measured].copy()
                    )
                )
        for column, pairs in self.metrics.items():
            where, what = np.asarray(pairs, dtype=np.float64).T
            points.append(
                Points(column, what.copy(), where.copy(), "step", "guard", np.arange(1, len(pairs) + 1, dtype=np.int64))
            )
        known = tuple(Fact(key, value, "given to the guard") for key, value in facts.items())
        trees = (parse_text(config, "config.json", "json"),) if config else ()
        return merge([Reading("guard", "guard", points=tuple(points), configs=trees, facts=known)], name=name, root=".")


class Asker:
    """Asks on a schedule; attach it to a guard and forget it.

    total_steps: the planned length, if known. config: the run's settings (a mapping), which many causes need. share: of
    the training's time, at most, spent on questions. thread: ask in the background; False asks inside the step.
    """

    def __init__(
        self,
        guard: Any,
        *,
        total_steps: int | None = None,
        config: Mapping[str, Any] | None = None,
        share: float = 0.005,
        thread: bool = True,
        name: str = "live",
    ) -> None:
        self.guard = guard
        self.history = History()
        self.facts = {} if total_steps is None else {"total_steps": total_steps}
        self.config = None if config is None else json.dumps(dict(config), default=str)
        self.share, self.threaded, self.name = share, thread, name
        self.told: set[str] = set()
        self.asked = 0
        self.seconds = 0.0  # of CPU, spent on questions
        self.errors: dict[str, str] = {}  # signs that broke, by id
        self._next = float(FIRST)
        self._began = time.perf_counter()
        self._streak: dict[str, int] = {}
        self._ready: list[Incident] = []
        self._worker: threading.Thread | None = None
        guard.listen(step=self.step)

    def step(self, record: StepRecord) -> None:
        self.history.add(record)
        self._hand_over()
        if self.history.seen >= self._next and self._affordable() and self._worker is None:
            self._next = self.history.seen + min(max(1.0, GROWTH * self.history.seen), LONGEST)
            self._start(record)

    def metric(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """Tell an evaluation's numbers, as {"val/loss": 1.2, "val/accuracy": 0.7}."""
        self.history.metric(float(self.guard.at if step is None else step), values)

    def close(self) -> None:
        """Ask once more, now that the run is over, and report what is left."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.join(timeout=60)
        self._hand_over()
        if self.guard.history:
            last = self.guard.history[-1]
            self._look(self.history.run(name=self.name, facts=self.facts, config=self.config), last.step, last.tick)
            self._hand_over()

    def _affordable(self) -> bool:
        return self.seconds <= self.share * (time.perf_counter() - self._began) or self.asked < 2

    def _start(self, record: StepRecord) -> None:
        run = self.history.run(name=self.name, facts=self.facts, config=self.config)  # copies, so the thread owns them
        if not self.threaded:
            self._look(run, record.step, record.tick)
            self._hand_over()
            return

        def work() -> None:
            try:
                self._look(run, record.step, record.tick)
            finally:
                self._worker = None

        self._worker = threading.Thread(target=work, name="wheeltapper-ask", daemon=True)
        self._worker.start()

    def _hand_over(self) -> None:
        while self._ready:
            self.guard.report(self._ready.pop(0))

    def _look(self, run: Any, step: int, tick: int) -> None:
        began = time.thread_time()
        try:
            found = [f for f in self.findings(run) if f.grade == "is" or self.history.seen >= SURE]
            now = {f.id for f in found}
            self._streak = {key: self._streak.get(key, 0) + 1 for key in now}
            seen = {i.kind for i in self.guard.incidents}
            new = [
                f
                for f in found
                if f.id not in self.told
                and self._streak[f.id] >= (1 if f.grade == "is" else TWICE)
                and not seen & set(ALREADY.get(f.id, ()))
            ]
            if new:
                self._ready += self._incidents(run, new, found, step, tick)
        except Exception as error:
            log.warning("the signs could not be asked; training goes on", exc_info=error)
        self.asked += 1
        self.seconds += time.thread_time() - began

    def findings(self, run: Any) -> list[Finding]:
        """What the signs that need no hindsight say of the run, trouble only. A sign that breaks is left out."""
        from wheeltapper.judge.echo import without_echoes
        from wheeltapper.rules.signs import ask, signs
        from wheeltapper.study import Study

        study = Study(run)
        found: list[Finding] = []
        for sign in signs():
            if not sign.live or sign.id in self.errors:
                continue
            try:
                found += [a for a in ask(sign, study) if isinstance(a, Finding)]
            except Exception as error:
                self.errors[sign.id] = f"{type(error).__name__}: {error}"
                log.warning("the sign %s cannot be asked here and is left out", sign.id, exc_info=error)
        return [f for f in without_echoes(found) if f.severity == "ill"]

    def _incidents(
        self, run: Any, new: Sequence[Finding], found: Sequence[Finding], step: int, tick: int
    ) -> list[Incident]:
        causes = likely_causes(run, found)
        out = []
        for finding in new:
            self.told.add(finding.id)
            mine = [c for c in causes if finding.id in c["explains"]]
            text = finding.summary[:1].upper() + finding.summary[1:]
            if mine:
                text += f". Likeliest cause: {mine[0]['title']} ({mine[0]['probability']:.0%})"
            facts: dict[str, Any] = {
                "sign": finding.id,
                "grade": finding.grade,
                "series": finding.series,
                "p": finding.p,
                **finding.numbers,
                "causes": [f"{c['title']} ({c['probability']:.0%}): {c['summary']}" for c in mine[:3]],
            }
            onset = None if finding.onset is None or not math.isfinite(finding.onset) else int(finding.onset)
            severity = "warning" if finding.grade == "suspected" else "error"
            out.append(
                Incident(
                    f"sign:{finding.id}",
                    step,
                    tick,
                    time.time(),
                    f"{text}.",
                    severity,
                    onset,
                    None,
                    facts,
                    self.guard.rank,
                )
            )
        return out


def likely_causes(run: Any, findings: Sequence[Finding], least: float = 0.5) -> list[dict[str, Any]]:
    """The causes that the record makes likely, most likely first; nothing where none is: a weak field stays unsaid.

    The shares are those of a run that is ill, as a sign has just said it is."""
    from wheeltapper.judge.evidence import Seen, gather
    from wheeltapper.judge.posterior import weigh
    from wheeltapper.rules.causes import cause
    from wheeltapper.study import Study

    posterior = weigh(gather(Study(run), live=True))
    out = []
    for id_, share in sorted(posterior.shares.items(), key=lambda pair: -pair[1]):
        known = cause(id_)
        explains = [] if known is None else [f.id for f in findings if f.id in known.explains or f.id in known.shows]
        if share >= least and known is not None and explains:
            texts = [item.seen.text for item in posterior.items.get(id_, ()) if item.bits > 0 and isinstance(item.seen, Seen)]
            summary = next((text for text in texts if text), "")
            out.append(
                {"id": id_, "title": known.title, "probability": share, "summary": summary, "explains": tuple(explains)}
            )
    return out


def config_of(path: str | Path) -> Mapping[str, Any]:
    """A JSON or YAML file as a mapping, for `Asker(config=...)`."""
    text = Path(path).read_text(encoding="utf-8")
    if str(path).endswith(".json"):
        value = json.loads(text)
    else:
        import yaml

        value = yaml.safe_load(text)
    return value if isinstance(value, dict) else {}
