"""A diagnosis -> the fix: chosen remedies, the three ways on, the corrected texts and the plan. Writes nothing."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wheeltapper.errors import InputError, RefusedEdit
from wheeltapper.finding import Edit
from wheeltapper.judge.evidence import pointers_of
from wheeltapper.judge.model import Diagnosis
from wheeltapper.judge.wording import share
from wheeltapper.remedy.choose import Choice, choose, signs_known, written_lines
from wheeltapper.remedy.draft import draft
from wheeltapper.remedy.expect import Next, with_edits
from wheeltapper.remedy.launch import Command, launches
from wheeltapper.remedy.loads import LoadTest, edit_run, load_test
from wheeltapper.remedy.named import named_cause
from wheeltapper.remedy.options import Option, options_of, unloadable
from wheeltapper.remedy.plan import Option as Letter
from wheeltapper.remedy.plan import Plan
from wheeltapper.remedy.studied import study_of
from wheeltapper.run.model import Run
from wheeltapper.settings.edit import editable
from wheeltapper.settings.edited import Edited
from wheeltapper.settings.parse import parse_text
from wheeltapper.settings.tree import ConfigTree
from wheeltapper.shown import Shown

MOST_BESIDE = 6  # lines of what is proved besides; `check` has them all
# ready: files can be written. nothing: the run is sound. code: no setting mends it, lines of code do.
# refused: every remedy was ruled out, by the user's pins or by earlier attempts. cannot-tell: whether it is ill,
# or why, is open; a trial or more data comes first.
State = Literal["ready", "nothing", "code", "refused", "cannot-tell"]


@dataclass(frozen=True, slots=True, repr=False)
class Fix(Shown):
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
    if diagnosis.verdict != "ill":
        return _not_ill(diagnosis)
    choice = choose(diagnosis, keep=keep, refuted=refuted, confirmed=confirmed, wanted=wanted)
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
        notes = (*_hints(choice, options), *beside(diagnosis, choice))
        return Fix(diagnosis, state, headline, choice, options, notes=notes)
    chosen = next(o for o in options if o.letter == letter)
    edited, by_hand = _edited(diagnosis, chosen)
    following = Next(
        diagnosis, choice, chosen,
        with_edits(study_of(diagnosis).maybe("knobs"), chosen.edits), corrected(diagnosis.run, edited),
    )  # fmt: skip
    if letter == "A":
        state, headline = "ready", f"{chosen.title}: {chosen.checkpoint}; the run itself is not mended by that"
    tests = tuple(load_test(one, diagnosis.run) for one in edited)
    for test in tests:
        if test.failed:
            raise RefusedEdit(f"the corrected config does not load: {test.failed[0].text}", where=test.file)
    plan = draft(following, edited, made)
    # Where the checkpoint must be named by hand, the old launch line would begin again from the start.
    commands = () if by_hand else launches(diagnosis.run, edited)
    notes = (
        *by_hand,
        *([untried] if untried else []),
        *_other_config(diagnosis, chosen.edits),
        *beside(diagnosis, choice),
    )
    return Fix(diagnosis, state, headline, choice, options, letter, edited, plan, commands, tests, notes)


def _not_ill(diagnosis: Diagnosis) -> Fix:
    """A run that is sound, or of which it cannot be told, has no fix."""
    choice = Choice()
    if diagnosis.verdict == "sound" and diagnosis.progress.state == "crashed":
        why = "Nothing to fix in how it trains, but the run did not finish"
        return Fix(diagnosis, "nothing", why, choice, notes=diagnosis.todo)
    if diagnosis.verdict == "sound":
        return Fix(diagnosis, "nothing", "Nothing to fix: nothing is wrong that this record can show", choice)
    notes = beside(diagnosis, choice)
    why = "No fix: whether the run is ill cannot be told from this record"
    if notes and not diagnosis.run.series:
        why = "No fix: nothing was logged; what settings and code prove by themselves is listed, to be mended by hand"
    return Fix(diagnosis, "cannot-tell", why, choice, notes=notes)


def _hints(choice: Choice, options: Sequence[Option]) -> list[str]:
    """What can be done all the same where no way on is chosen."""
    hints = ["Option A is open all the same: `--option A` writes it down"] if options[0].possible else []
    tries = [t.cause for t in choice.by("open") if t.remedy.edits]
    if tries:  # a cause in code or data has no setting, neither to try nor to put to trial
        hints += [
            f"`--try {tries[0]}` writes the config that tries the likeliest of them",
            "`wheeltapper trial` runs the trials that decide; it needs the command that starts your training",
        ]
    return hints


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

    What a treatment names already is left out; another defect of the same line is not.
    """
    told = {str(place) for t in choice.treatments for place in t.places}
    treated = {t.cause for t in choice.treatments}
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
            and not (str(lines[0]) in told and any(p.cause in treated for p in pointers_of([f])))
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
    cause = named_cause(diagnosis, wanted)
    assert cause is not None  # `choose` has refused what the run has not
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


def _edited(diagnosis: Diagnosis, option: Option) -> tuple[tuple[Edited, ...], tuple[str, ...]]:
    """The corrected texts; for a resume the checkpoint is named in them where the framework has a key for it."""
    if not option.edits:
        return (), ()
    run = diagnosis.run
    if option.letter == "C" and option.checkpoint is not None:
        now = study_of(diagnosis).maybe("knobs")
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
