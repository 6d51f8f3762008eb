"""A diagnosis -> the fix: chosen remedies, the three ways on, the corrected texts and the plan. Writes nothing."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Literal

from wheeltapper.config.edit import editable
from wheeltapper.config.edited import Edited
from wheeltapper.config.parse import parse_text
from wheeltapper.config.tree import ConfigTree
from wheeltapper.diagnosis.model import SOMETHING_ELSE, Diagnosis
from wheeltapper.diagnosis.wording import share
from wheeltapper.errors import InputError, RefusedEdit
from wheeltapper.finding import Edit, Place
from wheeltapper.remedy.alarms import warnings
from wheeltapper.remedy.choose import Choice, Treatment, choose, signs_known, written_lines
from wheeltapper.remedy.compared import levels_of, rates_of
from wheeltapper.remedy.expect import Next, bands, log_gap, signs_then, with_edits
from wheeltapper.remedy.launch import Command, launches
from wheeltapper.remedy.loads import LoadTest, edit_run, load_test
from wheeltapper.remedy.options import Option, options_of, unloadable
from wheeltapper.remedy.plan import Issue, Monitor, Plan, PlannedEdit, Question, Resume, Rule, Source
from wheeltapper.remedy.plan import Option as Letter
from wheeltapper.run.model import Run
from wheeltapper.signals import Signals

# ready: files can be written. nothing: the run is sound. code: no setting mends it, lines of code do.
# refused: every remedy was ruled out, by the user's pins or by earlier attempts. cannot-tell: whether it is ill,
# or why, is open; a trial or more data comes first.
MOST_BESIDE = 6  # lines of what is proved besides; `check` has them all
State = Literal["ready", "nothing", "code", "refused", "cannot-tell"]


@dataclass(frozen=True, slots=True)
class Fix:
    """All that `wheeltapper fix` knows about one run."""

    diagnosis: Diagnosis
    state: State
    headline: str
    choice: Choice
    options: tuple[Option, ...] = ()
    letter: Letter | None = None
    edited: tuple[Edited, ...] = ()
    plan: Plan | None = None
    commands: tuple[Command, ...] = ()
    tests: tuple[LoadTest, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def option(self) -> Option | None:
        return next((o for o in self.options if o.letter == self.letter), None)


def make_fix(
    diagnosis: Diagnosis,
    *,
    option: Letter | None = None,
    keep: Sequence[str] = (),
    refuted: Mapping[str, str] | None = None,
    confirmed: Collection[str] = (),
    wanted: str | None = None,
    made: str = "",
) -> Fix:
    """The fix of one run. `made`: the date for the plan; the rest is as `choose` takes it."""
    choice = Choice()
    if diagnosis.verdict == "ill":
        choice = choose(diagnosis, keep=keep, refuted=refuted, confirmed=confirmed, wanted=wanted)
    if diagnosis.verdict == "sound":
        why = "Nothing to fix: nothing is wrong that this record can show"
        if diagnosis.progress.state == "crashed":
            why = "Nothing to fix in how it trains, but the run did not finish"
        return Fix(
            diagnosis, "nothing", why, choice, notes=diagnosis.todo if diagnosis.progress.state == "crashed" else ()
        )
    if diagnosis.verdict == "cannot-tell":
        notes = beside(diagnosis, choice)
        why = "No fix: whether the run is ill cannot be told from this record"
        if notes and not diagnosis.run.series:
            why = (
                "No fix: nothing was logged; what settings and code prove by themselves is listed, to be mended by hand"
            )
        return Fix(diagnosis, "cannot-tell", why, choice, notes=notes)
    options: tuple[Option, ...] = options_of(diagnosis, choice)
    state, headline = _state(choice)
    untried = _untried(diagnosis, choice, wanted)
    if untried and not choice.edits and state != "code":
        state = "refused" if any(item.cause == wanted for item in choice.left) else "cannot-tell"
        headline = untried
        options = tuple(replace(o, why=untried) if o.letter == "B" else o for o in options)
    damaged = unloadable(diagnosis)
    if damaged is not None:
        headline = f"Mend {damaged.places[0]} first, no program loads that file ({damaged.summary}). {headline}"
    letter = _letter(option, options, state)
    if letter is None:
        hints = ["Option A is open all the same: `--option A` writes it down"] if options[0].possible else []
        tries = [t.cause for t in choice.by("open") if t.remedy.edits]
        if tries:  # a cause in code or data has no setting, neither to try nor to put to trial
            hints += [
                f"`--try {tries[0]}` writes the config that tries the likeliest of them",
                "`wheeltapper trial` runs the trials that decide; it needs the command that starts your training",
            ]
        return Fix(diagnosis, state, headline, choice, options, notes=(*hints, *beside(diagnosis, choice)))
    chosen = next(o for o in options if o.letter == letter)
    edited, notes = _edited(diagnosis.run, chosen)
    following = Next(
        diagnosis, choice, chosen,
        with_edits(Signals(diagnosis.run).maybe("knobs"), chosen.edits), corrected(diagnosis.run, edited),
    )  # fmt: skip
    if letter == "A":
        state, headline = "ready", f"{chosen.title}: {chosen.checkpoint}; the run itself is not mended by that"
    tests = tuple(load_test(one, diagnosis.run) for one in edited)
    for test in tests:
        if test.failed:
            raise RefusedEdit(f"the corrected config does not load: {test.failed[0].text}", where=test.file)
    plan = draft(following, edited, made)
    # Where the checkpoint must be named by hand, the old launch line would begin again from the start.
    commands = () if notes else launches(diagnosis.run, edited)
    notes = (
        *notes,
        *([untried] if untried else []),
        *_other_config(diagnosis, chosen.edits),
        *beside(diagnosis, choice),
    )
    return Fix(diagnosis, state, headline, choice, options, letter, edited, plan, commands, tests, notes)


def _other_config(diagnosis: Diagnosis, edits: Sequence[Edit]) -> tuple[str, ...]:
    """Where the log contradicts the rate that is edited, the file may not be the one the run was started with."""
    if not any(e.knob.startswith(("optimizer.lr", "schedule.")) for e in edits):
        return ()
    off = next((f for f in diagnosis.findings if f.id == "lr-off-plan"), None)
    if off is None:
        return ()
    return (f"Look whether this config is the one the run was started with: {off.summary}",)


def beside(diagnosis: Diagnosis, choice: Choice) -> tuple[str, ...]:
    """What settings or code prove besides what is treated: not what made the run ill, and still not as declared.

    Lines that a treatment names already are left out.
    """
    told = {str(place) for t in choice.treatments for place in t.places}
    damaged = unloadable(diagnosis)  # the headline says so, and what follows in that file follows from it
    out = []
    for f in diagnosis.findings:
        lines = written_lines(f.places)
        if damaged is not None and f.id == "syntax" and f.places[0].file == damaged.places[0].file:
            continue
        if (
            f.severity == "watch"
            and f.grade == "is"
            and f.id not in signs_known()
            and lines
            and str(lines[0]) not in told
        ):
            out.append(f"Also proved: {f.summary.rstrip('.')} ({lines[0]})")
    more = len(out) - MOST_BESIDE
    kept = out[:MOST_BESIDE]
    return (*kept, f"and {more} more of the kind: `wheeltapper check` lists them") if more > 0 else tuple(kept)


def _state(choice: Choice) -> tuple[State, str]:
    if choice.edits:
        surest = choice.by("apply", "try")[0]
        likely = "likely, not proved" if surest.how == "apply" else "a try, not a cure"
        more = "" if surest.proved else f" ({surest.cause} has {share(surest.probability)}: {likely})"
        return "ready", f"{surest.remedy.text.rstrip('.')}{more}"
    code = choice.by("code")
    if code:
        lead = code[0].by_hand
        return "code", f"{lead[0].upper()}{lead[1:]}: {code[0].remedy.text.rstrip('.')}"
    if choice.left and not choice.by("open"):
        return "refused", f"No remedy is left: {choice.left[0].why}"
    if choice.kept:
        return "refused", f"No fix: {choice.kept}, and no other cause is sure enough to change anything for it"
    return "cannot-tell", "No fix yet: no cause is sure enough to change anything for it"


def _untried(diagnosis: Diagnosis, choice: Choice, wanted: str | None) -> str:
    """Why nothing is changed for the cause that the user wants to try; empty where something is, or code must be."""
    if wanted is None or any(t.cause == wanted for t in choice.by("apply", "try", "code")):
        return ""
    cause = next(c for c in diagnosis.causes if c.id == wanted)
    left = next((item.why for item in choice.left if item.cause == wanted), "")
    if left:
        return f"Nothing is changed to try {wanted} ({share(cause.probability)}): {left}"
    hand = next((r.text for r in cause.remedies if not r.edits), "")
    other = f"by hand: {hand.rstrip('.')}" if hand else f"its trial decides: {cause.trial}" if cause.trial else ""
    return f"No setting can try {wanted} ({share(cause.probability)}){f'; {other}' if other else ''}"


def _letter(wanted: Letter | None, options: Sequence[Option], state: State) -> Letter | None:
    by = {o.letter: o for o in options}
    if wanted is not None and not by[wanted].possible and not (wanted == "B" and state == "code"):
        open_ = ", ".join(o.letter for o in options if o.possible)
        code = "Leave --option out: the plan of what to mend by hand is written."
        raise InputError(
            f"option {wanted} is not open: {by[wanted].why}.",
            do=f"Open: {open_}." if open_ else code if state == "code" else "None of the three is open for this run.",
        )
    if wanted is not None:
        return wanted
    return "B" if by["B"].possible or state == "code" else None


def _edited(run: Run, option: Option) -> tuple[tuple[Edited, ...], tuple[str, ...]]:
    """The corrected texts; for a resume the checkpoint is named in them where the framework has a key for it."""
    if not option.edits:
        return (), ()
    if option.letter == "C" and option.checkpoint is not None:
        now = Signals(run).maybe("knobs")
        # In full: the next run is started elsewhere than here.
        there = os.path.abspath(option.checkpoint)
        resume = Edit("resume.from", None if now is None else now.value("resume.from"), there)
        try:
            return tuple(edit_run(run, [*option.edits, resume])), ()
        except RefusedEdit as refused:
            note = f"Name the checkpoint yourself when you start the run: {there} ({refused.what})"
            return tuple(edit_run(run, option.edits)), (note,)
    return tuple(edit_run(run, option.edits)), ()


def corrected(run: Run, edited: Sequence[Edited]) -> tuple[ConfigTree, ...]:
    """The user's own files with the edits made; what the old run printed is not the next run's."""
    new = {e.file: e.after for e in edited}
    return tuple(
        replace(parse_text(new[tree.file], tree.file, tree.format), kind=tree.kind) if tree.file in new else tree
        for tree in run.configs
        if editable(tree)
    )


def draft(following: Next, edited: Sequence[Edited], made: str) -> Plan:
    """The plan of the next run."""
    diagnosis, choice, option = following.diagnosis, following.choice, following.option
    expected = bands(following)
    # Under A nothing is changed, so nothing that follows could confirm or refute a cause.
    done = choice.treatments if option.letter != "A" else [replace(t, how="open", edits=()) for t in choice.treatments]
    issues = tuple(_issue(following, t) for t in done)
    resume = None
    if option.letter == "C" and option.checkpoint is not None:
        resume = Resume(option.checkpoint, option.at, following.onset.clock, option.why)
    elif option.letter == "A" and option.checkpoint is not None:
        resume = Resume(option.checkpoint, option.at, None, "used as it is; nothing is trained")
    return Plan(
        version=1,
        option=option.letter,
        source=Source(diagnosis.run.name, run_hash(diagnosis.run), diagnosis.verdict, diagnosis.headline, diagnosis.progress.text),
        made=made,
        edits=_planned(choice, edited) if option.letter != "A" else (),
        resume=resume,
        issues=issues,
        levels=tuple(
            level
            for level in levels_of(diagnosis.run, [sign.series for issue in issues for sign in issue.signs])
            if following.comparable(diagnosis.run.series[level.series])
        ),
        rates=rates_of(diagnosis.run, [e.knob for e in option.edits]),
        expected=expected,
        warnings=warnings(following, expected) if option.letter != "A" else (),
        contingencies=_rules(following, issues),
        monitoring=_monitoring(following),
        questions=_questions(diagnosis, choice),
        settings=settings_of(diagnosis.run),
        configs=tuple(file_names(edited).values()),
    )  # fmt: skip


def _issue(following: Next, t: Treatment) -> Issue:
    return Issue(
        cause=t.cause, title=t.title, probability=round(t.probability, 3), how=t.how, remedy=t.remedy.text,
        predicts=t.remedy.predicts, knobs=tuple(e.knob for e in t.edits) if t.how in ("apply", "try") else (),
        places=tuple(str(p) for p in t.places[:4]), signs=signs_then(following, t.signs) if t.how != "open" else (), trial=t.trial, proved=t.proved,
    )  # fmt: skip


def _planned(choice: Choice, edited: Sequence[Edited]) -> tuple[PlannedEdit, ...]:
    where = {change.knob: str(Place(e.file, change.line)) for e in edited for change in e.changes}
    return tuple(
        PlannedEdit(e.knob, e.old, _like(e.new, e.old), t.cause, e.why, where.get(e.knob, ""))
        for t in choice.by("apply", "try")
        for e in t.edits
    )


def _like(new: Any, old: Any) -> Any:
    """380.0 in place of 5000 is written 380."""
    return int(new) if isinstance(new, float) and isinstance(old, int) and new.is_integer() else new


def _rules(following: Next, issues: Sequence[Issue]) -> tuple[Rule, ...]:
    """If X by step N, then Y: what a broken promise means, and the next thing to do."""
    out: list[Rule] = []
    done = {issue.cause for issue in issues if issue.how != "open"}
    rest = [c for c in following.diagnosis.causes if c.id != SOMETHING_ELSE and c.id not in done and c.trial]
    for issue in issues:
        if issue.how == "open":
            continue
        after = next((c for c in rest if {s.id for s in issue.signs} & set(c.explains)), None)
        tried = bool(issue.knobs) and not issue.proved
        then = f"{issue.cause} is refuted{' at the value tried' if tried else ' as the cause'}"
        then += (
            f"; the next is {after.id} ({share(after.probability)}): {after.trial}"
            if after is not None
            else "; put what is left to a trial"
        )
        seen = [s for s in issue.signs if s.by is not None]
        if seen:
            signs = " or ".join(dict.fromkeys(s.id for s in seen))
            by = f"{seen[0].clock} {max(s.by or 0.0 for s in seen):,.10g}"
            out.append(
                Rule(
                    f"{signs} is seen again by {by}, with the {'code changed' if issue.how == 'code' else 'edit made'}",
                    then,
                )
            )
        proved = [s.id for s in issue.signs if s.by is None and issue.how == "code"]
        as_before = "the code is as it was: the change did not reach the file that runs"
        out += [Rule(f"`wheeltapper check` still finds {sign}", as_before) for sign in proved]
    if any(band.metric == "lr" for band in bands(following)):
        out.append(
            Rule(
                "the logged learning rate leaves its band",
                "the edit did not take effect: look at the settings that the run prints, and at what a resume restores",
            )
        )
    return tuple(dict.fromkeys(out))


def _monitoring(following: Next) -> tuple[Monitor, ...]:
    """How often to look: the run's own evaluations, closely until the old onset is passed."""
    signals = Signals(following.run)
    series = signals.maybe("main_metric") or signals.maybe("val_loss") or signals.maybe("train_loss")
    if series is None or len(series) < 2 or following.option.letter == "A":
        return ()
    gap, onset = log_gap(series), following.onset
    each = (
        f"{series.name} at every value it logs (every {series.clock if gap == 1 else f'{gap:,.10g} {series.clock}s'})"
    )
    if onset.at is None or onset.clock != series.clock:
        return (Monitor(each, "the trouble was there from the first step on: the first values decide"),)
    until = math.ceil(onset.at * following.slower * 1.25)
    total = following.total_on(onset.clock)
    if total is not None and until >= total:
        return (Monitor(each, f"the old run broke at {onset.clock} {onset.at:,.10g}, and this one comes there later"),)
    return (
        Monitor(f"{each} until {onset.clock} {until:,}", f"the old run broke at {onset.clock} {onset.at:,.10g}"),
        Monitor("then at every tenth of the run", "no promise lies between"),
    )


def _questions(diagnosis: Diagnosis, choice: Choice) -> tuple[Question, ...]:
    proved = {t.cause for t in choice.treatments if t.proved}
    trials = [
        Question(f"Is it {cause.id} ({share(cause.probability)})?", cause.trial, (cause.id,))
        for cause in diagnosis.causes
        if cause.id != SOMETHING_ELSE and cause.trial and cause.id not in proved
    ]
    logs = [
        Question(missing.why, f"log {missing.what}", missing.decides)
        for missing in diagnosis.missing
        if missing.bits >= 1 and not missing.what.startswith("a trial")
    ]
    return (*trials, *logs)


def file_names(edited: Sequence[Edited]) -> dict[str, str]:
    """The name of each corrected file in the folder of the fix: its own; with its folder where two share one."""
    names = [PurePath(e.file).name for e in edited]
    out = {}
    for e, name in zip(edited, names, strict=True):
        folder = PurePath(e.file).parent.name
        out[e.file] = name if names.count(name) == 1 else f"{folder}_{name}"
    return out


# Settings that do not change what is learned.
IDLE = ("resume.", "checkpoint.", "log.", "logging.", "eval.", "data.workers", "model.compile", "finetune.")


def settings_of(run: Run) -> dict[str, Any]:
    """The settings that a run declares and that bear on what it learns."""
    knobs = Signals(run).maybe("knobs")
    declared = [] if knobs is None else knobs.declared()
    plain = (bool, int, float, str)
    return {
        k.id: k.value
        for k in declared
        if not k.id.startswith(IDLE)
        and (isinstance(k.value, plain) or (isinstance(k.value, list) and all(isinstance(v, plain) for v in k.value)))
    }


def run_hash(run: Run) -> str:
    """What the run recorded, in twelve letters: the same for the same values wherever the folder lies."""
    digest = hashlib.sha256()
    for name in sorted(run.series):
        series = run.series[name]
        digest.update(name.encode("utf-8", "replace"))
        digest.update(series.at.tobytes())
        digest.update(series.values.tobytes())
    for tree in run.configs:
        for leaf in tree.leaves:
            digest.update(f"{leaf.dotted}={leaf.raw}".encode("utf-8", "replace"))
    return digest.hexdigest()[:12]
