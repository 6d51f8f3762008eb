"""Which remedies enter the fix, which do not, and why.

A cause that is proved, or has more than half of the probability with room to spare, is treated in the config;
one that is only suspected leads to a trial. An edit that would change nothing is worse than none: it looks
like a cure. So an edit is left out where the value is so already, where the code never reads the option, where
the framework refuses it, where it contradicts a likelier one, and where the user pinned the knob.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from wheeltapper.errors import InputError, RefusedEdit
from wheeltapper.finding import Edit, Finding, Place, Remedy
from wheeltapper.judge.model import SOMETHING_ELSE, Diagnosis, RankedCause
from wheeltapper.judge.wording import leading
from wheeltapper.remedy.loads import edit_run, load_test
from wheeltapper.remedy.named import named_cause
from wheeltapper.remedy.pins import pins
from wheeltapper.remedy.plan import How
from wheeltapper.remedy.studied import study_of
from wheeltapper.rules.causes import causes
from wheeltapper.rules.signs import signs
from wheeltapper.settings.edited import same
from wheeltapper.settings.knobs import Knobs

# Above this a suspected cause is treated: of 14 lab runs whose first cause had 0.6 or more, it was right in 10 (LOG.md,
# 2026-11-16), and a wrong edit costs one run, which refutes it.
SURE = 0.6
# A suspected cause is tried only where it is likelier than all others together; below, its trial is named.
EVEN = 0.5
# What an audit may prove of an option: setting it does nothing.
UNREAD = ("option-never-used", "config-key-never-read")
# Knobs that a proved defect makes deaf: whatever the config says, the run does otherwise.
DEAF: Mapping[str, tuple[str, ...]] = {
    "accumulation-not-implemented": ("batch.accumulation",),
    "onecycle-overrides-momentum": ("optimizer.momentum",),
    "scheduler-never-stepped": ("schedule.*",),
    "resize-not-applied": ("augment.progressive",),
}
# Files that people write, by their names; a place in any other is what the run printed.
WRITTEN = (".py", ".sh", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini")


@dataclass(frozen=True, slots=True)
class Treatment:
    """One cause, and what is done about it."""

    cause: str
    title: str
    probability: float
    proved: bool
    how: How
    remedy: Remedy
    edits: tuple[Edit, ...] = ()
    places: tuple[Place, ...] = ()
    signs: tuple[Finding, ...] = ()
    trial: str = ""

    @property
    def by_hand(self) -> str:
        """Who must do what no config edit does, in words."""
        if self.edits and self.how == "code" and not self.places:
            return "no config file that can be edited lies beside the run; by hand"
        return "no setting mends this; the code does" if self.places else "no edit of a config does this; by hand"


@dataclass(frozen=True, slots=True)
class Left:
    """A remedy that is not used, and why."""

    cause: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What is done, and what is not."""

    treatments: tuple[Treatment, ...] = ()
    left: tuple[Left, ...] = ()

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of the corrected config."""
        return tuple(e for t in self.treatments if t.how in ("apply", "try") for e in t.edits)

    @property
    def kept(self) -> str:
        """The first remedy that the user's pins left out, in words; empty where none was."""
        return next((item.why for item in self.left if item.why.startswith("you keep")), "")

    def by(self, *how: How) -> tuple[Treatment, ...]:
        return tuple(t for t in self.treatments if t.how in how)


def choose(
    diagnosis: Diagnosis,
    *,
    keep: Sequence[str] = (),
    refuted: Mapping[str, str] | None = None,
    confirmed: Collection[str] = (),
    wanted: str | None = None,
) -> Choice:
    """The remedies to use.

    `keep`: knobs that must stay. `refuted`: causes that earlier attempts ruled out, and how; `confirmed`: causes that
    a trial proved. `wanted`: a suspected cause that the user wants to try; then nothing else that is unproved is changed.
    """
    book = _Book(diagnosis, pins(keep, diagnosis), confirmed)
    ranked = [c for c in diagnosis.causes if c.id != SOMETHING_ELSE]
    if wanted is not None and wanted not in {c.id for c in ranked}:
        found = named_cause(diagnosis, wanted)
        ranked += [] if found is None else [found]
    if wanted is not None and wanted not in {c.id for c in ranked}:
        raise InputError(
            f"--try {wanted}: this cause is not among those of the run.",
            do=f"There are: {', '.join(c.id for c in ranked)}." if ranked else "No cause is named for it.",
        )
    first = next((c for c in ranked if c.id == wanted), None)
    if first is None and (first := leading(diagnosis.causes)) is not None and first.probability < EVEN:
        first = None
    # What the user wants to try comes first: no other suspicion may have taken the setting before.
    ranked.sort(key=lambda cause: cause.id != wanted)
    done: list[Treatment] = []
    left: list[Left] = []
    for cause in ranked:
        if refuted and cause.id in refuted:
            why = (
                f"refuted by an earlier attempt ({refuted[cause.id]}); to try it harder all the same, leave out --case"
            )
            left += [Left(cause.id, r.text, why) for r in cause.remedies[:1]]
            continue
        if cause.tried < 0:
            why = next(e.text for e in cause.evidence if e.group == "trial")
            left += [Left(cause.id, r.text, why) for r in cause.remedies[:1]]
            continue
        treatment, passed = _treat(cause, book, done, aside=wanted not in (None, cause.id))
        left += passed
        if treatment is not None:
            done.append(treatment)
    done, held = _one_trial(done, first, wanted)
    left += held
    told = {f.id for t in done for f in t.signs} | {t.cause for t in done} | {item.cause for item in left}
    done += [_defect(f) for f in diagnosis.findings if _is_defect(f) and f.id not in told and written_lines(f.places)]
    return Choice(tuple(done), tuple(left))


def _treat(
    cause: RankedCause, book: _Book, done: Sequence[Treatment], *, aside: bool
) -> tuple[Treatment | None, list[Left]]:
    """The first remedy of this cause that can be used; what was passed over on the way.

    `aside`: the user tries another cause; only what is proved is treated beside it.
    """
    proved = book.proves(cause)
    # Which part of an evaluation is broken may be open while it is plain that it is: then that comes first all the same.
    share = max(cause.probability, book.evaluation if areas().get(cause.id) == "evaluation" and not done else 0.0)
    sure = proved or (not aside and (cause.grade == "is-p" or share >= SURE))
    left: list[Left] = []
    by_hand: tuple[Remedy, tuple[Edit, ...]] | None = None
    for remedy in cause.remedies:
        if remedy.safety == "advice":
            left.append(Left(cause.id, remedy.text, "advice: never applied for you"))
            continue
        if not remedy.edits:
            by_hand = by_hand or (remedy, ())
            continue
        edits, why, reachable = book.usable(remedy.edits, done)
        if edits:
            return _treatment(cause, "apply" if sure else "try", remedy, book, edits), left
        left.append(Left(cause.id, f"{remedy.text} ({_words(remedy.edits)})", why))
        if not reachable:
            by_hand = by_hand or (remedy, remedy.edits)
    if by_hand is not None and sure:
        remedy, edits = by_hand
        return _treatment(cause, "code", remedy, book, edits), left
    if sure or not cause.trial:
        return None, left
    nothing = Remedy("", (), "advice", by_hand[0].predicts if by_hand else "")
    return _treatment(cause, "open", nothing, book, ()), left


def _treatment(cause: RankedCause, how: How, remedy: Remedy, book: _Book, edits: tuple[Edit, ...]) -> Treatment:
    shown = (*(e for e in cause.evidence if e.group == "proof"), *(e for e in cause.evidence if e.group == "code"))
    places = written_lines(p for e in shown for p in e.places)
    seen = tuple(f for f in book.diagnosis.findings if f.id in cause.explains and f.severity == "ill")
    proved = book.proves(cause)
    return Treatment(cause.id, cause.title, cause.probability, proved, how, remedy, edits, places, seen, cause.trial)


def _one_trial(
    done: list[Treatment], first: RankedCause | None, wanted: str | None
) -> tuple[list[Treatment], list[Left]]:
    """Of causes that are only suspected, at most the leading one is tried, and none beside a broken evaluation.

    Two unproved changes in one run prove neither (TRL-14), and a score that cannot be believed judges nothing.
    """
    out: list[Treatment] = []
    left: list[Left] = []
    broken = any(t.how == "code" and areas().get(t.cause) == "evaluation" for t in done)
    surely = any(t.how == "apply" for t in done)
    for t in done:
        if t.how != "try":
            out.append(t)
            continue
        if t.cause == wanted:
            out.append(t)
            continue
        if wanted is not None:
            why = f"you try {wanted}; two changes at once would prove neither"
        elif broken:
            why = "the evaluation is mended first: nothing can be judged by it"
        elif surely:
            why = "a likelier cause is treated first; two changes at once would prove neither"
        elif first is None or first.id != t.cause:
            why = "suspected only, and not likelier than the others together: its trial decides"
        else:
            out.append(t)
            continue
        left.append(Left(t.cause, f"{t.remedy.text} ({_words(t.edits)})", why))
        out.append(replace(t, how="open", edits=()))
    return out, left


def _is_defect(finding: Finding) -> bool:
    """Proved by code or settings, not seen in what the run logged: a crash is certain, and its cause is not."""
    return finding.severity == "ill" and finding.grade == "is" and finding.id not in signs_known()


@cache
def signs_known() -> frozenset[str]:
    return frozenset(sign.id for sign in signs())


def _defect(finding: Finding) -> Treatment:
    remedy = Remedy("Mend the lines named here.", (), "safe", "")
    return Treatment(
        finding.id, finding.summary, 1.0, True, "code", remedy, (), written_lines(finding.places), (finding,)
    )


def written_lines(places: Iterable[Place]) -> tuple[Place, ...]:
    """Lines that a person can change: of code and settings, not of a log."""
    return tuple(dict.fromkeys(p for p in places if (p.file or "").endswith(WRITTEN)))


class _Book:
    """What an edit is held against: the settings now, what the code does not read, and the user's pins."""

    def __init__(self, diagnosis: Diagnosis, pinned: Sequence[str], confirmed: Collection[str]) -> None:
        self.diagnosis = diagnosis
        self.confirmed = confirmed
        self.pinned = pinned
        self.knobs: Knobs | None = study_of(diagnosis).maybe("knobs")
        known = {c.id: c.probability for c in diagnosis.causes if c.id != SOMETHING_ELSE}
        of_evaluation = sum(p for id_, p in known.items() if areas().get(id_) == "evaluation")
        self.evaluation = of_evaluation / max(sum(known.values()), 1e-9)  # of what has a name
        self.unread = [f for f in diagnosis.findings if f.id in UNREAD]
        self.deaf = [(f, pattern) for f in diagnosis.findings for pattern in DEAF.get(f.id, ())]

    def proves(self, cause: RankedCause) -> bool:
        """By arithmetic, by code or settings, or by a trial. What they prove is there, however little it explains."""
        if cause.grade == "is" or cause.id in self.confirmed or cause.tried > 0:
            return True
        return any(_is_defect(f) and f.id in cause.explains for f in self.diagnosis.findings)

    def usable(self, edits: Sequence[Edit], done: Sequence[Treatment]) -> tuple[tuple[Edit, ...], str, bool]:
        """The edits that can be made; else why not, and whether the setting can be reached by config at all."""
        taken = {e.knob: e.new for t in done if t.how in ("apply", "try") for e in t.edits}
        for edit in edits:
            if edit.knob in self.pinned:
                return (), f"you keep {edit.knob}", True
            if edit.knob in taken and not same(taken[edit.knob], edit.new):
                return (), f"a likelier cause sets {edit.knob} to {taken[edit.knob]}", True
            if same(self._now(edit), edit.new):
                return (), f"{edit.knob} is {edit.new} already: nothing would change", True
            if why := self._ignored(edit.knob):
                return (), why, False
        new = tuple(e for e in edits if e.knob not in taken)
        if not new:
            return tuple(edits), "", True
        run = self.diagnosis.run
        try:
            edited = edit_run(run, [*(e for t in done for e in t.edits if t.how != "code"), *new])
        except RefusedEdit as refused:
            return (), refused.what, False
        for one in edited:
            if failed := load_test(one, run, loaders=False).failed:
                return (), f"the config would not load: {failed[0].text}", False
        return tuple(edits), "", True

    def _now(self, edit: Edit) -> Any:
        known = None if self.knobs is None else self.knobs.get(edit.knob)
        return edit.old if known is None else known.value

    def _ignored(self, knob: str) -> str:
        """Why the run would not follow this setting, where code proves that."""
        for finding, pattern in self.deaf:
            if fnmatch.fnmatch(knob, pattern):
                return f"setting it does nothing: {finding.summary}"
        leaf = None if self.knobs is None or knob not in self.knobs else self.knobs[knob].leaf
        if leaf is None:
            return ""
        for finding in self.unread:
            if any(p.file == leaf.file and p.line == leaf.line and p.column == leaf.column for p in finding.places):
                return f"the code never reads it: {finding.summary}"
        return ""


def _words(edits: Sequence[Edit]) -> str:
    return ", ".join(f"{e.knob} {'' if e.old is None else f'{e.old} '}→ {e.new}" for e in edits)


@cache
def areas() -> dict[str, str]:
    """The area of each cause."""
    return {cause.id: cause.area for cause in causes()}
