"""Diagnosis -> one plain view: the only input of the terminal, Markdown and HTML renderers.

All text is cleaned here once; a renderer adds its own escaping and nothing else. JSON does not come from
here: a program wants the numbers, not the words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from wheeltapper.finding import Edit, Evidence, Finding, Grade, Place, Remedy, Severity, Unknown
from wheeltapper.judge.model import SOMETHING_ELSE, Diagnosis, RankedCause, RuledOut, Verdict
from wheeltapper.prognosis.forecast import Forecast
from wheeltapper.report.curves import Chart, charts_of
from wheeltapper.report.spark import spark
from wheeltapper.report.text import bits, clean, num, percent, position, span
from wheeltapper.run.model import Run, Series

VERDICT_WORDS: dict[Verdict, str] = {"sound": "Sound", "ill": "Ill", "cannot-tell": "Cannot tell"}
GRADE_WORDS: dict[Grade, str] = {
    "is": "certain: arithmetic or code",
    "is-p": "beyond what noise explains",
    "suspected": "suspected: put it to trial",
    "expected": "expected here",
}
CAUSE_WORDS: dict[Grade, str] = {**GRADE_WORDS, "is-p": "likely, by what was measured"}
# What stands under the headline: for an ill run the reasons, else what a reader may stumble over.
WHY_WORDS: dict[Verdict, str] = {"sound": "Worth knowing", "ill": "Why", "cannot-tell": "Worth knowing"}
MOST_PLACES = 3
MOST_CURVE_LINES = 6


@dataclass(frozen=True, slots=True)
class CurveLine:
    """One series in one line of text."""

    name: str
    picture: str
    numbers: str
    better: str


@dataclass(frozen=True, slots=True)
class SignView:
    id: str
    severity: Severity
    grade: Grade
    grade_words: str
    summary: str
    series: str
    when: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EvidenceView:
    bits: str
    supports: bool
    text: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemedyView:
    text: str
    safety: str
    edits: tuple[str, ...]
    predicts: str


@dataclass(frozen=True, slots=True)
class CauseView:
    id: str
    title: str
    probability: float
    share: str
    grade: Grade
    grade_words: str
    summary: str
    explains: tuple[str, ...]
    evidence: tuple[EvidenceView, ...]
    remedies: tuple[RemedyView, ...]
    trial: str
    known: bool  # False: "something else"

    @property
    def speaks(self) -> tuple[tuple[str, tuple[EvidenceView, ...]], ...]:
        """What speaks for the cause and what against it, strongest first; a side with nothing is left out."""
        sides = (("for", True), ("against", False))
        told = ((words, tuple(e for e in self.evidence if e.supports is side)) for words, side in sides)
        return tuple((words, items) for words, items in told if items)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a small table: what, the answer, the reason."""

    name: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class RunView:
    name: str
    root: str
    formats: str
    verdict: Verdict
    verdict_words: str
    chance: str  # that something is wrong, and what kind of trouble it is: "97 % · evaluation"
    headline: str
    why: tuple[str, ...]
    why_words: str
    suspicion: Row | None  # the leading cause where it is open whether anything is wrong
    todo: tuple[str, ...]
    progress: str
    best: Row | None
    curves: tuple[CurveLine, ...]
    signs: tuple[SignView, ...]
    causes: tuple[CauseView, ...]
    validity: tuple[Row, ...]
    ruled_out: tuple[Row, ...]
    expected: tuple[Row, ...]
    missing: tuple[Row, ...]
    prognosis: tuple[str, ...]
    facts: tuple[Row, ...]
    outside: tuple[Row, ...]  # observations outside their healthy band that are no sign of this run
    inside: int  # observations inside it
    unknown: tuple[Row, ...]  # observations and signs that could not be looked for
    looked: int  # signs looked for and not there
    notes: tuple[str, ...]
    charts: tuple[Chart, ...] = ()


def view_of(diagnosis: Diagnosis, *, charts: bool = False) -> RunView:
    """The view of one run. Charts are computed only where a renderer draws them."""
    run = diagnosis.run
    view = RunView(
        name=clean(run.name, 120),
        root=clean(run.root, 200),
        formats=", ".join(clean(f, 80) for f in run.formats),
        verdict=diagnosis.verdict,
        verdict_words=verdict_words(diagnosis),
        chance=chance_words(diagnosis),
        headline=clean(diagnosis.headline),
        why=_cleaned(line for line in diagnosis.why if line.rstrip(".") not in diagnosis.headline),
        why_words=WHY_WORDS[diagnosis.verdict],
        suspicion=_suspicion(diagnosis),
        todo=_cleaned(diagnosis.todo),
        progress=_progress(diagnosis),
        best=_best(diagnosis),
        curves=tuple(curve_line(s) for s in _telling(diagnosis)),
        signs=tuple(_sign(f) for f in diagnosis.findings),
        causes=tuple(_cause(c) for c in diagnosis.causes),
        validity=tuple(
            Row(clean(v.series, 80), _valid_words(v.valid, v.baseline), clean(v.why)) for v in diagnosis.validity
        ),
        ruled_out=_ruled_out(diagnosis),
        expected=tuple(Row(clean(e.id), clean(e.title), clean(e.why)) for e in diagnosis.expected),
        missing=tuple(Row(clean(m.what), _decides(m.decides, m.bits), clean(m.why)) for m in diagnosis.missing),
        prognosis=_prognosis(diagnosis.prognosis),
        facts=facts_of(run),
        outside=_outside(diagnosis),
        inside=sum(s.inside for s in diagnosis.seen if s.value is not None),
        unknown=tuple(
            Row(clean(name), ", ".join(clean(n) for n in answer.needs), clean(answer.why))
            for name, answer in diagnosis.unknowns
        ),
        looked=len(diagnosis.clears),
        notes=tuple(dict.fromkeys((*_cleaned(diagnosis.notes), *notes_of(run)))),
    )
    near: RunView = nearer(view, base_of(run))
    return replace(near, root=view.root, charts=charts_of(diagnosis) if charts else ())


def verdict_words(diagnosis: Diagnosis) -> str:
    """The verdict as it is shown. "Sound" alone would be read as a run that went well to its end."""
    words = VERDICT_WORDS[diagnosis.verdict]
    return f"{words}, but crashed" if diagnosis.verdict == "sound" and diagnosis.progress.state == "crashed" else words


def chance_words(diagnosis: Diagnosis) -> str:
    """The probability that something is wrong, and which kind of trouble it would be where that is said.

    A run that is not ill has no trouble to name beside its verdict: what is suspected stands below.
    """
    kind = f" · {diagnosis.trouble}" if diagnosis.verdict == "ill" and diagnosis.trouble else ""
    return f"{percent(diagnosis.p_ill)}{kind}"


def _suspicion(diagnosis: Diagnosis) -> Row | None:
    """The leading cause of a run that cannot be judged, with the strongest thing that speaks for it."""
    if diagnosis.verdict != "cannot-tell":
        return None
    for cause in diagnosis.causes:
        told = next((e for e in cause.evidence if e.bits > 0), None)
        if cause.id != SOMETHING_ELSE and told is not None:
            share = f"{percent(cause.probability)} if something is wrong"
            repeated = told.text.rstrip(".") in diagnosis.headline
            why = "" if repeated else f"{bits(told.bits)} bits: {clean(told.text)}"
            return Row(clean(cause.id, 60), f"{clean(cause.title)} ({share})", why)
    return None


def _ruled_out(diagnosis: Diagnosis) -> tuple[Row, ...]:
    """What is not the cause; a reason that rules out several is said once."""
    by_reason: dict[str, list[RuledOut]] = {}
    for ruled_out in diagnosis.ruled_out:
        by_reason.setdefault(ruled_out.why, []).append(ruled_out)
    return tuple(
        Row(", ".join(clean(r.id) for r in told), "; ".join(clean(r.title) for r in told), clean(why))
        for why, told in by_reason.items()
    )


def _outside(diagnosis: Diagnosis) -> tuple[Row, ...]:
    told = {finding.id for finding in diagnosis.findings}
    return tuple(
        Row(clean(s.id, 60), num(s.value), clean(s.text))
        for s in diagnosis.seen
        if s.value is not None and not s.inside and s.id not in told
    )


def base_of(run: Run) -> str:
    """The folder that every path of a report is inside; a run that is one file lies in its folder."""
    folder = run.root if run.root not in run.files else os.path.dirname(run.root)
    return clean(folder, 400).rstrip("/") + "/" if folder not in ("", ".") else ""


def nearer(value: Any, base: str) -> Any:
    """Paths as seen from the folder of the run: in a line of text a long path hides the point."""
    if not base or value is None:
        return value
    if isinstance(value, str):
        if os.path.isabs(base):
            return value.replace(base, "")
        # "run/" is also the end of "trial_run/" and the middle of another path: only a whole path is shortened.
        return re.sub(rf"(?<![\w./\\-]){re.escape(base)}", "", value)
    if isinstance(value, tuple):
        return tuple(nearer(item, base) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: nearer(getattr(value, f.name), base) for f in fields(value)})
    return value


def _cleaned(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(clean(line) for line in lines)


def places_of(places: Iterable[Place]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean(place, 160) for place in places))[:MOST_PLACES]


def _sign(finding: Finding) -> SignView:
    grade = GRADE_WORDS[finding.grade]
    if "bits" in finding.numbers:  # an observation: it was weighed, not tested
        grade = f"{bits(finding.numbers['bits'])} bits for the leading cause"
    elif finding.grade == "is-p" and finding.p is not None:
        # Below a millionth the model of the noise is surer than it can be.
        grade = f"p = {num(finding.p)}" if finding.p >= 1e-6 else "p < 1e-6"
    when = span(finding.onset, finding.end, finding.clock)
    # "(epoch 0)" and an epoch that repeats the step tell nothing.
    if finding.onset_epoch not in (None, 0.0, finding.onset) and finding.clock != "epoch":
        when += f" (epoch {num(finding.onset_epoch)})"
    return SignView(
        id=clean(finding.id, 60),
        severity=finding.severity,
        grade=finding.grade,
        grade_words=grade,
        summary=clean(finding.summary),
        series=clean(finding.series or "", 80),
        when=when,
        places=places_of(finding.places),
    )


def _cause(cause: RankedCause) -> CauseView:
    return CauseView(
        id=clean(cause.id, 60),
        title=clean(cause.title),
        probability=cause.probability,
        share=percent(cause.probability),
        grade=cause.grade,
        grade_words=CAUSE_WORDS[cause.grade],
        summary="" if cause.evidence and cause.summary == cause.evidence[0].text else clean(cause.summary, 800),
        explains=_cleaned(cause.explains),
        evidence=tuple(_evidence(e) for e in cause.evidence),
        remedies=tuple(remedy_view(r) for r in cause.remedies),
        # One that has confirmed it was made: no other need be proposed.
        trial="" if cause.tried > 0 else clean(cause.trial, 800),
        known=cause.id != SOMETHING_ELSE,
    )


def _evidence(evidence: Evidence) -> EvidenceView:
    return EvidenceView(bits(evidence.bits), evidence.bits >= 0, clean(evidence.text), places_of(evidence.places))


def remedy_view(remedy: Remedy) -> RemedyView:
    return RemedyView(
        clean(remedy.text, 800), remedy.safety, tuple(_edit(e) for e in remedy.edits), clean(remedy.predicts)
    )


def _edit(edit: Edit) -> str:
    return f"{clean(edit.knob, 80)}: {value_words(edit.old)} → {value_words(edit.new)}"


def value_words(value: Any) -> str:
    if value is None:
        return "(not set)"
    if isinstance(value, float) and not isinstance(value, bool):
        return num(value)
    return clean(value, 80)


def _valid_words(valid: str, baseline: float | None) -> str:
    words = {"yes": "reliable", "no": "not reliable", "cannot-tell": "cannot tell"}[valid]
    return words if baseline is None else f"{words} (trivial: {num(baseline)})"


def _decides(causes: tuple[str, ...], weight: float) -> str:
    between = " or ".join(clean(c, 60) for c in causes)
    return f"{between} ({num(weight)} bits)" if between and weight else between


def _best(diagnosis: Diagnosis) -> Row | None:
    best = diagnosis.best
    if best is None:
        return None
    if best.nothing:
        return Row("", "none", clean(best.nothing))
    what = f"{clean(best.metric, 80)} = {num(best.value)}"
    if best.step is not None:
        # `step` is a position on the clock of the metric.
        series = diagnosis.run.series.get(best.metric)
        what += f" at {position(best.step, series.clock if series else 'step')}"
    if best.path is None:
        what += "; no file of it is known"
    elif not best.exists:
        what += "; the log names it, it is not on disk here"
    return Row(clean(best.path or "", 200), what, clean(best.why))


def _progress(diagnosis: Diagnosis) -> str:
    progress = diagnosis.progress
    words = {"unknown": ""}.get(progress.state, progress.state)
    if progress.at is not None:
        reach = position(progress.at, progress.clock)
        if progress.total is not None:
            reach += f" of {num(progress.total)}"
        words = f"{words} at {reach}" if words else reach
    return clean(progress.text) or words


def _prognosis(prognosis: object | None) -> tuple[str, ...]:
    if isinstance(prognosis, Unknown):
        return (clean(f"No forecast: {prognosis.why}"),)
    return _cleaned(prognosis.lines) if isinstance(prognosis, Forecast) and prognosis.at else ()


def _telling(diagnosis: Diagnosis) -> list[Series]:
    """The series a reader wants to see at once: those with signs, then losses and held-out metrics."""
    run = diagnosis.run
    with_signs = [f.series for f in diagnosis.findings if f.series in run.series and f.severity != "note"]
    judged = [diagnosis.best.metric] if diagnosis.best and diagnosis.best.metric in run.series else []
    losses = [s.name for split in ("train", "val") for s in run.find("loss") if s.split == split]
    held_out = [s.name for s in run.series.values() if s.split in ("val", "test") and not s.part and s.quantity]
    rates = [s.name for s in run.find("lr")]
    names = dict.fromkeys(name for name in [*with_signs, *judged, *losses, *held_out, *rates] if name)
    if not names:
        names = dict.fromkeys(run.series)
    return [run.series[name] for name in list(names)[:MOST_CURVE_LINES]]


def unit_words(series: Series) -> str:
    """The unit beside a name; a share between 0 and 1 needs none."""
    return "" if series.unit in (None, "fraction", "share") else f" ({clean(series.unit, 12)})"


def curve_line(series: Series, width: int = 24) -> CurveLine:
    values = series.values
    good = values[series.finite]
    parts = []
    if len(values):
        parts.append(f"{num(float(values[0]))} → {num(float(values[-1]))}")
    if good.size:
        extreme, word = (good.min(), "min") if series.better == "down" else (good.max(), "max")
        parts.append(f"{word} {num(float(extreme))}")
    if good.size < len(values):
        parts.append(f"{len(values) - good.size:,} not finite")
    better = {"up": "↑", "down": "↓"}.get(series.better, "")
    return CurveLine(clean(series.name, 60), spark(values, width), ", ".join(parts), better)


def facts_of(run: Run, most: int = 24) -> tuple[Row, ...]:
    rows = []
    for fact in run.facts.values():
        source = clean(f"derived: {fact.source}" if fact.derived else fact.source, 160)
        if isinstance(fact.value, Mapping):
            pairs = [(f"{fact.name}.{key}", value) for key, value in fact.value.items()]
        else:
            pairs = [(fact.name, fact.value)]
        rows += [Row(clean(name, 60), value_words(value), source) for name, value in pairs]
    return tuple(rows[:most])


def notes_of(run: Run) -> tuple[str, ...]:
    """What the readers could not use, worst first."""
    order = {"lost": 0, "repaired": 1, "info": 2}
    notes = sorted(run.notes, key=lambda note: order[note.level])
    return tuple(clean(f"{Place(file=note.file, line=note.line)}: {note.text}") for note in notes)
