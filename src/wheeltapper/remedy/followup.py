"""The next run held against its plan: each promise kept, broken or not yet testable; each cause fixed or refuted.

A cause is FIXED when its edit was really made and its sign is gone where it had been seen; PARTIAL when the run is
better by more than noise and not yet where it should be; REFUTED when the edit took effect and nothing is better. An
edit that was not made, or that a resume undid, proves nothing either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from wheeltapper.finding import Finding
from wheeltapper.judge.model import Diagnosis, Verdict
from wheeltapper.remedy.compared import RATE, Compared, compare, rate_as_then, than
from wheeltapper.remedy.draft import run_hash, settings_of
from wheeltapper.remedy.plan import Issue, Plan, PlannedEdit, SignThen
from wheeltapper.remedy.promises import PromiseCheck, promise, resumed, rung
from wheeltapper.remedy.studied import study_of
from wheeltapper.run.model import Run
from wheeltapper.run.onsets import from_start, moved
from wheeltapper.settings.edit import editable
from wheeltapper.settings.edited import same
from wheeltapper.settings.knobs import KNOBS
from wheeltapper.study import Study

Status = Literal["FIXED", "PARTIAL", "OPEN", "REFUTED", "NOT YET"]
# An onset within a quarter of the old one is the same place: seeds and logging intervals move it that much.
SAME_PLACE = 0.25


@dataclass(frozen=True, slots=True)
class EditCheck:
    """Whether the new run really has an edit."""

    knob: str
    wanted: Any
    found: Any
    made: bool | None  # None: the new run does not tell


@dataclass(frozen=True, slots=True)
class IssueCheck:
    """One cause of the plan."""

    cause: str
    title: str
    status: Status
    why: str
    dose: bool = False  # refuted by one value of a number only: a stronger change could still be the cure
    undone: bool = False  # the edit is in the settings, and the run did as before


@dataclass(frozen=True, slots=True)
class Followup:
    """The whole answer."""

    diagnosis: Diagnosis
    plan: Plan
    hash: str
    edits: tuple[EditCheck, ...]
    promises: tuple[PromiseCheck, ...]
    issues: tuple[IssueCheck, ...]
    warnings: tuple[str, ...]
    fresh: tuple[str, ...]  # ill signs that the old run did not have
    also: tuple[str, ...]  # settings that changed beside the plan
    todo: tuple[str, ...]
    stale: bool = False  # this is the old run itself: nothing can be told by it

    @property
    def run(self) -> str:
        return self.diagnosis.run.name

    @property
    def verdict(self) -> Verdict:
        return self.diagnosis.verdict

    @property
    def headline(self) -> str:
        return self.diagnosis.headline

    @property
    def outcome(self) -> Literal["kept", "broken", "not yet"]:
        """kept: all is well. broken: something is not as planned. not yet: too early, nothing wrong so far."""
        if any(i.status in ("PARTIAL", "OPEN", "REFUTED") for i in self.issues) or self.fresh:
            return "broken"
        if any(p.status == "broken" for p in self.promises):
            return "broken"
        waiting = any(i.status == "NOT YET" for i in self.issues) or any(p.status == "not yet" for p in self.promises)
        return "not yet" if waiting or self.verdict == "cannot-tell" else "kept"


def follow_up(diagnosis: Diagnosis, plan: Plan) -> Followup:
    """The new run, diagnosed, against the plan."""
    run, study = diagnosis.run, study_of(diagnosis)
    stale = run_hash(run) == plan.source.hash
    edits = tuple(_edit(study, e) for e in plan.edits)
    ended = diagnosis.progress.state == "finished"
    promises = () if stale else (*resumed(run, plan), *(promise(run, band, ended) for band in plan.expected))
    seen = _Seen(diagnosis, plan, edits, compare(run, plan.levels), promises)
    issues = tuple(_issue(seen, issue, stale) for issue in plan.issues if issue.how != "open")
    rang = () if stale else tuple(rung(run, plan.warnings))
    then = {(s.id, s.series) for i in plan.issues for s in i.signs}
    fresh = tuple(
        f.summary
        for f in diagnosis.findings
        if f.severity == "ill" and (f.id, f.series) not in then and not _kin(f, then)
    )
    also = _also(study, plan)
    if also:
        told = f"; {len(also)} other setting{'s' if len(also) > 1 else ''} changed too, so it is not proved which one did it"
        issues = tuple(replace(i, why=i.why + told) if i.status in ("FIXED", "PARTIAL") else i for i in issues)
    todo = _todo(diagnosis, plan, edits, issues, promises, stale, bool(fresh), also)
    return Followup(
        diagnosis, plan, run_hash(run), edits, promises, issues, rang, () if stale else fresh, also, todo, stale
    )


def _also(study: Study, plan: Plan) -> tuple[str, ...]:
    """Settings that differ from the old run's and that no edit of the plan changes."""
    now, planned = settings_of(study), {e.knob for e in plan.edits}
    return tuple(
        f"{knob}: {old} → {now[knob]}"
        for knob, old in plan.settings.items()
        if knob in now and knob not in planned and not same(old, now[knob])
    )


def _kin(finding: Finding, then: set[tuple[str, str | None]]) -> bool:
    """The same sign in a series of another name is not a new trouble."""
    return any(finding.id == sign for sign, _ in then)


def _edit(study: Study, edit: PlannedEdit) -> EditCheck:
    if edit.knob not in KNOBS:
        return _key_edit(study.run, edit)
    knobs = study.maybe("knobs")
    known = None if knobs is None else knobs.get(edit.knob)
    if known is None:
        return EditCheck(edit.knob, edit.new, None, None)
    return EditCheck(edit.knob, edit.new, known.value, same(known.value, edit.new))


def _key_edit(run: Run, edit: PlannedEdit) -> EditCheck:
    """A key of the config by its dotted name. One that was to be taken out is gone where there is a config."""
    files = [tree for tree in run.configs if editable(tree)]
    leaf = next((found for tree in files if (found := tree.leaf(edit.knob)) is not None), None)
    if leaf is None:
        return EditCheck(edit.knob, edit.new, None, True if edit.new is None and files else None)
    return EditCheck(edit.knob, edit.new, leaf.value, edit.new is not None and same(leaf.value, edit.new))


@dataclass(frozen=True, slots=True)
class _Seen:
    """The new run, as an issue is judged by it."""

    diagnosis: Diagnosis
    plan: Plan
    edits: tuple[EditCheck, ...]
    compared: Compared
    promises: tuple[PromiseCheck, ...]

    def short(self) -> PromiseCheck | None:
        """A score whose last promise that can be told is broken; what was late and has come is not."""
        last = {p.metric: p for p in self.promises if p.metric and p.status in ("kept", "broken")}
        scores = [p for name, p in last.items() if name != "lr" and not name.startswith("lr/")]
        return next((p for p in scores if p.status == "broken"), None)

    def no_better(self) -> bool:
        """The score that matters most ended where it had ended before, and the run is still not sound."""
        compared = self.compared
        return self.diagnosis.verdict != "sound" and compared.first in ("same", "worse") and not compared.helped

    def undone(self, knobs: Sequence[str]) -> tuple[str, bool]:
        """Why an edit of the learning rate is in the settings and not in force, and whether that is sure."""
        if self.plan.rates is None or not any(knob.startswith(RATE) for knob in knobs):
            return "", False
        after = self.plan.resume.at if self.plan.resume is not None else None
        return rate_as_then(self.diagnosis.run, self.plan.rates, after)


def _issue(new: _Seen, issue: Issue, stale: bool) -> IssueCheck:
    def told(status: Status, why: str, undone: bool = False) -> IssueCheck:
        return IssueCheck(issue.cause, issue.title, status, why, undone=undone)

    if stale:
        return told("OPEN", "this is the run that the plan was made from")
    diagnosis = new.diagnosis
    mine = [e for e in new.edits if e.knob in issue.knobs]
    missed = next((e for e in mine if e.made is False), None)
    seen = [(sign, _again(diagnosis, sign)) for sign in issue.signs]
    gone = seen and all(again is None for _, again in seen)
    extra = "; the sign is not there all the same, so something else changed it" if gone else ""
    if missed is not None:
        return told("OPEN", f"the edit was not made: {missed.knob} is {missed.found}, not {missed.wanted}{extra}")
    if any(e.made is None for e in mine):
        return told("NOT YET", f"the new run does not tell its {', '.join(e.knob for e in mine if e.made is None)}")
    undone, sure = new.undone(issue.knobs)
    if undone and sure:
        return told("OPEN", f"the edit is in the settings and did not take effect: {undone}{extra}", True)
    if issue.how == "code" and not issue.knobs and (still := _code_as_before(diagnosis, issue)):
        return told("OPEN", still)
    verdicts = [_sign(new, sign, again) for sign, again in seen]
    if undone and any(verdict in ("REFUTED", "PARTIAL") for verdict, _ in verdicts):
        return told("OPEN", f"the edit is in the settings and has not taken effect yet: {undone}", True)
    made = ", ".join(f"{e.knob} is {'gone' if e.found is None else e.found}" for e in mine)
    done = f"{made}; " if made else ""
    dose = not issue.proved and bool(mine) and all(_number(e.wanted) for e in mine)
    more = ". This refutes the value that was tried; one much further off would show the same" if dose else ""
    for status in ("REFUTED", "PARTIAL", "NOT YET"):
        for verdict, why in verdicts:
            if verdict == status == "REFUTED":
                return IssueCheck(issue.cause, issue.title, verdict, f"{done}{why.rstrip('.')}{more}", dose)
            if verdict == status:
                return told(verdict, f"{done}{why.rstrip('.')}")
    if not verdicts:
        return told("NOT YET", f"{done}the plan names no sign to look for")
    why = done + "; ".join(why for _, why in verdicts)
    short = new.short()
    if issue.proved and new.no_better() and all(sign.series is None for sign in issue.signs):
        return told("REFUTED", f"{why}; but the run is no better than it was: this was not, or not alone, what made it ill")
    if short is None or issue.proved:
        return told("FIXED", why)
    if new.compared.first == "worse":  # the sign went away, and what matters most with it
        return IssueCheck(
            issue.cause, issue.title, "REFUTED", f"{why}; but it is worse than it was: {new.compared.worse[0]}", dose
        )
    return told("PARTIAL", f"{why}; but the promise is not kept: {short.what}, and it is {short.saw}")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _again(diagnosis: Diagnosis, sign: SignThen) -> Finding | None:
    """The same sign in the new run; in a series of another name only where the old one is gone."""
    found = [f for f in diagnosis.findings if f.id == sign.id and f.severity == "ill"]
    named = [f for f in found if f.series == sign.series]
    gone = sign.series is not None and sign.series not in diagnosis.run.series
    return next(iter(named or (found if gone else [])), None)


def _lesser(diagnosis: Diagnosis, sign: SignThen) -> Finding | None:
    """The same sign, no longer ill but still there."""
    for f in diagnosis.findings:
        if f.id == sign.id and f.series == sign.series and f.severity == "watch" and f.grade != "suspected":
            return f
    return None


def _code_as_before(diagnosis: Diagnosis, issue: Issue) -> str:
    """A defect of the code is looked for in the code that lies beside the new run."""
    wanted = {s.id for s in issue.signs if s.series is None}
    still = next((f for f in diagnosis.findings if f.id in wanted), None)
    if still is not None:
        where = f" ({still.places[0]})" if still.places else ""
        return f"the code is as it was: {still.summary}{where}"
    return ""


def _sign(new: _Seen, sign: SignThen, again: Finding | None) -> tuple[Status, str]:
    diagnosis, run = new.diagnosis, new.diagnosis.run
    name = sign.id if sign.series is None else f"{sign.id} in {sign.series}"
    if sign.series is None and sign.by is None:  # proved by settings or code: it is there, or it is not
        if again is not None:
            return _refuted(new, f"{sign.id} is still there: {again.summary}")
        if not any(len(s) >= 2 for s in run.series.values()):
            return "NOT YET", f"{sign.id} is gone from the settings, and the run has logged nothing yet"
        if not run.configs and not run.scripts:
            return "NOT YET", f"neither settings nor code lie beside the new run, so {sign.id} cannot be looked for"
        return "FIXED", f"{sign.id} is gone"
    reach = reached(run, sign.clock, sign.series)
    if reach is None:
        return "NOT YET", f"the new run does not log {sign.series or 'anything'} by {sign.clock}, the clock of the plan"
    spot = f"{sign.clock} {reach:,.10g}"
    if again is None:
        if lesser := _lesser(diagnosis, sign):
            return "PARTIAL", f"{name} is weaker, and still to be watched: {lesser.summary}"
        if sign.by is not None and reach < sign.by and diagnosis.progress.state != "finished":
            return "NOT YET", f"no {name} at {spot}; it can be told at {sign.by:,.10g}"
        was = "" if sign.onset is None else f" (it was there from {sign.clock} {sign.onset:,.10g} on)"
        return "FIXED", f"no {name} by {spot}{was}"
    if sign.id == "crashed" and sign.by is not None and reach > (1 + SAME_PLACE) * sign.by:
        return "PARTIAL", f"it crashed later: at {reach:,.10g}, in the old run at {sign.by:,.10g}"
    onset = None if again.onset is None or sign.clock is None else moved(run, again, again.onset, sign.clock)
    if onset is None or sign.onset is None:
        return _refuted(new, f"{name} is there again: {again.summary}")
    early = sign.by is not None and reach < sign.by and onset >= sign.onset
    if early and from_start(run, again):
        return "NOT YET", f"{name} so far, at {spot}; it can be told at {sign.by:,.10g}"
    if onset > (1 + SAME_PLACE) * sign.onset and not from_start(run, again):
        return "PARTIAL", f"{name} comes later: at {onset:,.10g}, in the old run at {sign.onset:,.10g}"
    before = next((level for level in new.plan.levels if level.series == sign.series), None)
    answer = None if before is None else than(run, before)
    if answer is not None and answer[0] == "better":
        return "PARTIAL", f"{name} is there again at {onset:,.10g}, but weaker: {answer[1]}"
    return _refuted(
        new, f"{name} is there again at {onset:,.10g} (in the old run at {sign.onset:,.10g}): {again.summary}"
    )


def _refuted(new: _Seen, why: str) -> tuple[Status, str]:
    """A sign that is there again. Where the run is better than the old one all the same, it was a part of it."""
    if new.compared.helped:
        return "PARTIAL", f"{why.rstrip('.')}; but the run is better than it was: {new.compared.better[0]}"
    return (
        "REFUTED",
        f"{why.rstrip('.')}{'; and worse than it was: ' + new.compared.worse[0] if new.compared.worse else ''}",
    )


def reached(run: Run, clock: str | None, name: str | None = None) -> float | None:
    """How far a series (or any) has come on a clock."""
    named = run.series.get(name or "")
    chosen = [named] if named is not None else list(run.series.values())
    ends = []
    for series in chosen:
        track = series.on(clock) if clock else None  # type: ignore[arg-type]
        if track is not None and np.any(np.isfinite(track)):
            ends.append(float(np.nanmax(track)))
    return max(ends) if ends else None


def _todo(
    diagnosis: Diagnosis, plan: Plan, edits: Sequence[EditCheck], issues: Sequence[IssueCheck],
    promises: Sequence[PromiseCheck], stale: bool, fresh: bool, also: Sequence[str],
) -> tuple[str, ...]:  # fmt: skip
    out: list[str] = []
    if stale:
        return ("Give the next run, not the one that the plan was made from.",)
    missed = [e for e in edits if e.made is False]
    if missed:
        out.append(f"Start the run with the planned settings: {', '.join(f'{e.knob} {e.wanted}' for e in missed)}.")
    refuted = [i for i in issues if i.status == "REFUTED"]
    if refuted:
        rules = [r.then for r in plan.contingencies if any(i.cause in r.then for i in refuted)]
        out += list(dict.fromkeys(rules))[:2]
        out.append(
            "Diagnose the new run and fix it with --case: it knows what was tried, and what two attempts refuted is not offered again."
        )
    if any(i.undone for i in issues):
        out.append(
            "Train again from the start, or load only the weights when you resume: the saved state restores the old rate."
        )
    if any(i.status == "PARTIAL" for i in issues):
        out.append(
            "It helped and is not enough: fix the new run with --case, which goes on from the values it has now."
        )
    if not out and fresh:
        out.append("It has a new trouble, which comes first: diagnose the new run, mend that, and start it again.")
    waiting = [p for p in promises if p.status == "not yet"]
    if not out and (waiting or any(i.status == "NOT YET" for i in issues)):
        nearest = f" (next: {waiting[0].what})" if waiting else ""
        out.append(f"Come back when the run has gone further{nearest}.")
    if not out and any(p.status == "broken" for p in promises):
        out.append("A promise is broken though its cause is mended: diagnose the new run.")
    if not out and diagnosis.verdict == "sound" and also and plan.issues:
        more = f" and {len(also) - 2} more" if len(also) > 2 else ""
        out.append(
            f"Nothing, if a sound run is all you need. What mended it is open: {'; '.join(also[:2])}{more} changed beside "
            "the plan. One more run with the planned edits alone decides."
        )
    if not out:
        out.append(
            {
                "sound": "Nothing: the plan is fulfilled.",
                "ill": "Diagnose the new run: it is not sound yet.",
                "cannot-tell": "Diagnose the new run: it says what its record lacks to be judged.",
            }[diagnosis.verdict]
        )
    return tuple(out)
