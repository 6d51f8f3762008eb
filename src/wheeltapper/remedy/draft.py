"""The plan of the next run, drafted: what is changed, what that promises, what to look at, and what stays open."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from wheeltapper.finding import Place
from wheeltapper.judge.model import SOMETHING_ELSE, Diagnosis
from wheeltapper.judge.wording import share
from wheeltapper.remedy.alarms import warnings
from wheeltapper.remedy.choose import Choice, Treatment
from wheeltapper.remedy.compared import levels_of, rates_of
from wheeltapper.remedy.expect import Next, bands, log_gap, signs_then
from wheeltapper.remedy.plan import Issue, Monitor, Plan, PlannedEdit, Question, Resume, Rule, Source
from wheeltapper.remedy.studied import study_of
from wheeltapper.run.model import Run
from wheeltapper.settings.edited import Edited
from wheeltapper.study import Study


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
            for level in levels_of(study_of(diagnosis), [sign.series for issue in issues for sign in issue.signs])
            if following.comparable(diagnosis.run.series[level.series])
        ),
        rates=rates_of(study_of(diagnosis), [e.knob for e in option.edits]),
        expected=expected,
        warnings=warnings(following, expected) if option.letter != "A" else (),
        contingencies=_rules(following, issues),
        monitoring=_monitoring(following),
        questions=_questions(diagnosis, choice),
        settings=settings_of(study_of(diagnosis)),
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
    study = following.study
    series = study.maybe("main_metric") or study.maybe("val_loss") or study.maybe("train_loss")
    if series is None or len(series) < 2 or following.option.letter == "A":
        return ()
    gap, onset = log_gap(series), following.onset
    each = (
        f"{series.name} at every value it logs (every {series.clock if gap == 1 else f'{gap:,.10g} {series.clock}s'})"
    )
    if onset.at is None:
        return (Monitor(each, "the trouble was there from the first step on: the first values decide"),)
    broke = f"the old run broke at {onset.clock} {onset.at:,.10g}"
    if onset.clock is None or onset.clock != series.clock:
        return (Monitor(each, broke),)
    until = math.ceil(onset.at * following.slower * 1.25)
    total = following.total_on(onset.clock)
    if total is not None and until >= total:
        return (Monitor(each, f"{broke}, and this one comes there later"),)
    return (
        Monitor(f"{each} until {onset.clock} {until:,}", broke),
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


def settings_of(study: Study) -> dict[str, Any]:
    """The settings that a run declares and that bear on what it learns."""
    knobs = study.maybe("knobs")
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
