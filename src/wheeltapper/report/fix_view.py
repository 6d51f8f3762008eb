"""Fix and Followup -> plain views: the only input of their terminal, Markdown and HTML renderers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wheeltapper.judge.model import Verdict
from wheeltapper.remedy.case_file import Attempt, CaseFile
from wheeltapper.remedy.choose import Treatment
from wheeltapper.remedy.draft import file_names
from wheeltapper.remedy.fix import Fix
from wheeltapper.remedy.followup import EditCheck, Followup
from wheeltapper.remedy.options import Option
from wheeltapper.remedy.plan import Plan, Warn
from wheeltapper.report.curves import Chart
from wheeltapper.report.fix_charts import band_words, charts_with
from wheeltapper.report.text import clean, num, percent, position
from wheeltapper.report.view import VERDICT_WORDS, Row, base_of, nearer, places_of, value_words

HOW_WORDS = {
    "apply": "changed",
    "try": "tried",
    "code": "needs a change of code",
    "open": "open: its trial decides",
}
PROMISE_SIGNS = {"kept": "✓", "broken": "✗", "not yet": "…", "cannot look": "?"}
DiffKind = Literal["head", "hunk", "old", "new", "same"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    kind: DiffKind
    text: str


@dataclass(frozen=True, slots=True)
class DiffView:
    file: str
    lines: tuple[DiffLine, ...]
    checks: tuple[str, ...]  # what was tried on the corrected file


@dataclass(frozen=True, slots=True)
class ChangeView:
    """One row of before and after."""

    knob: str
    old: str
    new: str
    why: str
    place: str


@dataclass(frozen=True, slots=True)
class IssueView:
    cause: str
    title: str
    share: str
    how: str
    how_words: str
    remedy: str
    predicts: str
    edits: tuple[str, ...]
    places: tuple[str, ...]
    trial: str


@dataclass(frozen=True, slots=True)
class OptionView:
    letter: str
    title: str
    possible: bool
    chosen: bool
    why: str
    rows: tuple[tuple[str, str], ...]  # cost, risk, what it would prove
    todo: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BandView:
    where: str
    metric: str
    band: str
    source: str


@dataclass(frozen=True, slots=True)
class PlanView:
    """What the next run is held against."""

    expected: tuple[BandView, ...]
    warnings: tuple[Row, ...]
    rules: tuple[tuple[str, str], ...]
    monitoring: tuple[Row, ...]
    questions: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class FixView:
    name: str
    verdict: Verdict
    verdict_words: str
    diagnosis: str
    state: str
    headline: str
    changes: tuple[ChangeView, ...]
    diffs: tuple[DiffView, ...]
    issues: tuple[IssueView, ...]
    options: tuple[OptionView, ...]
    left: tuple[Row, ...]
    collect: tuple[Row, ...]
    notes: tuple[str, ...]
    commands: tuple[str, ...]
    plan: PlanView | None
    charts: tuple[Chart, ...] = ()


def fix_view(fix: Fix, folder: str | None = None, *, charts: bool = False) -> FixView:
    """The view of a fix. `folder`: where it is written, for the commands; charts only where they are drawn."""
    d = fix.diagnosis
    base = base_of(d.run)
    view = FixView(
        name=clean(d.run.name, 120),
        verdict=d.verdict,
        verdict_words=VERDICT_WORDS[d.verdict],
        diagnosis=clean(d.headline),
        state=fix.state,
        headline=clean(fix.headline, 600),
        changes=tuple(
            ChangeView(clean(e.knob, 80), value_words(e.old), value_words(e.new), clean(e.why), clean(e.place, 200))
            for e in (fix.plan.edits if fix.plan else ())
        ),
        diffs=_diffs(fix),
        issues=tuple(_issue(t, fix.letter) for t in fix.choice.treatments),
        options=tuple(_option(o, fix) for o in fix.options),
        left=tuple(Row(clean(item.cause, 60), clean(item.text, 600), clean(item.why)) for item in fix.choice.left),
        collect=tuple(Row(clean(m.what), "", clean(m.why)) for m in d.missing[:4]),
        notes=tuple(clean(note) for note in fix.notes),
        commands=(),
        plan=plan_view(fix.plan) if fix.plan is not None else None,
    )
    near: FixView = nearer(view, base)
    return replace(near, commands=commands_of(fix, folder), charts=charts_with(d, fix.plan) if charts else ())


def commands_of(fix: Fix, folder: str | None) -> tuple[str, ...]:
    """Lines that can be pasted once the fix is written to `folder`."""
    if fix.plan is None or folder is None:
        return ()
    if fix.letter == "A":
        return ()  # nothing is trained, so there is no next run to hold against the plan
    # Each begins with cd: a path from here would not be found there, nor the next line work from there.
    start = [f"({clean(c.at(shlex.quote(os.path.abspath(folder))), 2000)})" for c in fix.commands]
    if not start:
        how = "resume as your program does it" if fix.letter == "C" else "start the next run as you started this one"
        start = [
            f"# {how}, with {clean(folder, 1000)}/{clean(name, 200)} for {clean(old, 1000)}"
            for old, name in file_names(fix.edited).items()
        ]
    return (*start, f"wheeltapper followup NEW_RUN --plan {clean(shlex.quote(folder), 1000)}/plan.yaml")


def _diffs(fix: Fix) -> tuple[DiffView, ...]:
    tests = {test.file: test for test in fix.tests}
    out = []
    for edited in fix.edited:
        lines = tuple(_diff_line(line) for line in edited.diff().splitlines())
        tried = tests[edited.file].checks if edited.file in tests else ()
        checks = tuple(clean(f"{'✓' if c.ok else '?'} {c.name}: {c.text}") for c in tried)
        out.append(DiffView(clean(edited.file, 300), lines, checks))
    return tuple(out)


def _diff_line(line: str) -> DiffLine:
    kind: DiffKind = "same"
    if line.startswith(("+++", "---")):
        kind = "head"
    elif line.startswith("@@"):
        kind = "hunk"
    elif line.startswith("+"):
        kind = "new"
    elif line.startswith("-"):
        kind = "old"
    lead = line[: len(line) - len(line.lstrip(" "))] if kind == "same" else line[:1] + _indent(line[1:])
    return DiffLine(kind, lead + clean(line[len(lead) :], 400) if kind in ("same", "old", "new") else clean(line, 400))


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" "))]


def _issue(t: Treatment, letter: str | None) -> IssueView:
    shown = tuple(
        f"{clean(e.knob, 80)}: {'in the code' if e.old is None and t.how == 'code' else value_words(e.old)} → {value_words(e.new)}"
        for e in t.edits
    )
    return IssueView(
        clean(t.cause, 60), clean(t.title), "proved" if t.proved else percent(t.probability).replace(" ", ""), t.how, _how_words(t, letter),
        clean(t.remedy.text, 800), clean(t.remedy.predicts), shown, places_of(t.places), clean(t.trial, 800),
    )  # fmt: skip


def _how_words(t: Treatment, letter: str | None) -> str:
    if letter == "A" and t.how in ("apply", "try"):
        return "left as it is"
    return HOW_WORDS[t.how] if t.places or t.how != "code" else "by hand"


def _option(option: Option, fix: Fix) -> OptionView:
    named = (("cost", option.cost), ("risk", option.risk), ("would prove", option.proves))
    rows = tuple((name, clean(text, 800)) for name, text in named if text and option.possible)
    return OptionView(
        option.letter, option.title, option.possible, fix.letter == option.letter and option.possible,
        clean(option.why, 800), rows, tuple(clean(t) for t in option.todo),
    )  # fmt: skip


def plan_view(plan: Plan) -> PlanView:
    return PlanView(
        tuple(
            BandView(position(b.at, b.clock), clean(b.metric, 80), band_words(b), clean(b.source))
            for b in plan.expected
        ),
        tuple(Row(clean(w.metric, 80), _warn_words(w), clean(w.reason)) for w in plan.warnings),
        tuple((clean(r.when), clean(r.then, 800)) for r in plan.contingencies),
        tuple(Row(clean(m.look), "", clean(m.why)) for m in plan.monitoring),
        tuple(Row(clean(q.question), "", clean(q.test, 800)) for q in plan.questions),
    )


def _warn_words(warn: Warn) -> str:
    parts = ["not finite"] if warn.not_finite else []
    parts += [f"above {num(warn.above)}"] if warn.above is not None else []
    parts += [f"below {num(warn.below)}"] if warn.below is not None else []
    after = f" after {position(warn.after, warn.clock)}" if warn.after is not None else ""
    return " or ".join(parts) + after


@dataclass(frozen=True, slots=True)
class FollowupView:
    name: str
    verdict: Verdict
    verdict_words: str
    headline: str
    outcome: str
    outcome_words: str
    edits: tuple[Row, ...]
    issues: tuple[Row, ...]  # cause, status, why
    promises: tuple[Row, ...]  # what, status, what was seen
    warnings: tuple[str, ...]
    fresh: tuple[str, ...]
    also: tuple[str, ...]
    todo: tuple[str, ...]
    charts: tuple[Chart, ...] = ()

    @property
    def told(self) -> str:
        """Verdict and headline; the headline of an open verdict begins with the verdict itself."""
        begins = self.headline.startswith(self.verdict_words)
        return self.headline if begins else f"{self.verdict_words}: {self.headline}"


OUTCOME_WORDS = {"kept": "As planned", "broken": "Not as planned", "not yet": "Too early to tell"}


def followup_view(result: Followup, *, charts: bool = False) -> FollowupView:
    return FollowupView(
        name=clean(result.run, 120),
        verdict=result.verdict,
        verdict_words=VERDICT_WORDS[result.verdict],
        headline=clean(result.headline),
        outcome=result.outcome,
        outcome_words=OUTCOME_WORDS[result.outcome],
        edits=tuple(Row(clean(e.knob, 80), _made(e), "") for e in result.edits),
        issues=tuple(Row(clean(i.cause, 60), i.status, clean(i.why, 800)) for i in result.issues),
        promises=tuple(Row(clean(p.what), p.status, clean(p.saw)) for p in result.promises),
        warnings=tuple(clean(w) for w in result.warnings),
        fresh=tuple(clean(f) for f in result.fresh),
        also=tuple(clean(a) for a in result.also),
        todo=tuple(clean(t, 800) for t in result.todo),
        charts=charts_with(result.diagnosis, result.plan) if charts else (),
    )


def _made(edit: EditCheck) -> str:
    if edit.made is None:
        return f"planned {value_words(edit.wanted)}; the new run does not tell"
    if edit.made:
        return "taken out, as planned" if edit.wanted is None else f"{value_words(edit.found)}, as planned"
    return f"{value_words(edit.found)}; planned was {value_words(edit.wanted)}: not made"


@dataclass(frozen=True, slots=True)
class AttemptView:
    title: str
    headline: str
    edits: tuple[str, ...]
    verdicts: tuple[Row, ...]
    promises: str
    todo: tuple[str, ...]


def attempts_of(case: CaseFile) -> Sequence[AttemptView]:
    return [_attempt(number, a) for number, a in enumerate(case.attempts, start=1)]


def _attempt(number: int, attempt: Attempt) -> AttemptView:
    kind = {"plan": f"plan, option {clean(attempt.option, 4)}", "followup": "followed up", "trial": "trial"}[
        attempt.what
    ]
    arrow = "planned {}, found {}" if attempt.what == "followup" else "{} → {}"
    promises = ""
    if attempt.what == "followup":
        promises = f"promises: {attempt.kept} kept, {len(attempt.broken)} broken, {attempt.waiting} not yet testable"
    return AttemptView(
        f"{number}. {clean(attempt.date, 40)}  {clean(attempt.run, 120)} ({kind})",
        clean(attempt.headline),
        tuple(f"{clean(e.knob, 80)}: {arrow.format(value_words(e.old), value_words(e.new))}" for e in attempt.edits),
        tuple(Row(clean(v.cause, 60), clean(v.status, 20), clean(v.why, 600)) for v in attempt.verdicts),
        promises,
        tuple(clean(t, 600) for t in attempt.todo),
    )


def refuted_of(case: CaseFile) -> list[Row]:
    return [Row(clean(cause, 60), "", clean(why, 600)) for cause, why in case.refuted.items()]
