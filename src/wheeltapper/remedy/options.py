"""The three ways on: A use what there is, B train again, C resume. What each costs, risks and would prove.

A way that is not open is shown as such, with the reason. People pick the cheapest that looks open; a checkpoint
that was never saved, or a resume that restores the old rate, costs them a day.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from wheeltapper.audit.length import length_of
from wheeltapper.finding import Edit, Finding
from wheeltapper.judge.model import BestCheckpoint, Diagnosis
from wheeltapper.judge.wording import share
from wheeltapper.reading.record import CLOCKS, ClockName, Floats
from wheeltapper.remedy.choose import Choice, Treatment, areas
from wheeltapper.remedy.pace import Pace, hours_words, pace_of
from wheeltapper.remedy.plan import Option as Letter
from wheeltapper.remedy.resumes import resume_test
from wheeltapper.remedy.studied import study_of
from wheeltapper.run.model import Checkpoint, Run
from wheeltapper.run.onsets import began, from_start, position, sound_until

# Causes that spoil the averaged weights and leave the raw ones alone.
AVERAGE = ("ema-horizon-too-long", "ema-low-precision", "ema-buffers-stale", "resume-lost-ema")


@dataclass(frozen=True, slots=True)
class Option:
    """One way on. `length` is what is still to be trained, on `clock`; None: unknown."""

    letter: Letter
    title: str
    possible: bool
    why: str  # why it is valid, or why it is not open
    length: float | None = None
    clock: str | None = None
    hours: float | None = None
    cost: str = ""
    risk: str = ""
    proves: str = ""
    checkpoint: str | None = None
    at: float | None = None
    edits: tuple[Edit, ...] = ()
    todo: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Onset:
    """Where the trouble begins, on the clock of the plan; `at` None: from the first step.

    `sound`: the last row that is known to lie before it. A score that is bad at one evaluation may have turned so at
    any moment since the one before.
    """

    at: float | None
    clock: ClockName | None
    words: str
    sound: float = -math.inf

    def before(self, track: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """The rows that are known to be sound."""
        return np.isfinite(track) & (track <= self.sound)


def options_of(diagnosis: Diagnosis, choice: Choice) -> tuple[Option, Option, Option]:
    """A, B and C, whether open or not."""
    pace = pace_of(diagnosis.run, diagnosis.progress.clock)
    quick = _raw_weights(diagnosis, choice) or _quick(diagnosis)
    return quick, _retrain(diagnosis, choice, pace), _resume(diagnosis, choice, pace)


def _quick(diagnosis: Diagnosis) -> Option:
    title = "Use the best checkpoint there is"
    best = diagnosis.best
    if best is None:
        judged = [v for v in diagnosis.validity if v.valid == "no"]
        why = f"no score can be believed: {judged[0].why}" if judged else "no valid score on held-out data is logged"
        return Option("A", title, False, f"{why}, so no checkpoint can be called the best")
    if best.nothing:
        return Option("A", title, False, best.nothing)
    if best.path is None or not best.exists:
        why = best.why.removeprefix(f"best {best.metric}; ")
        return Option("A", title, False, f"{why}; the best was {best.metric} {best.value:.4g}")
    file = next((c for c in diagnosis.run.checkpoints if c.path == best.path), None)
    onset = onset_of(diagnosis, ())
    broke = [f for f in diagnosis.findings if f.severity == "ill" and f.series == best.metric and f.onset is not None]
    if onset.at is None and broke:  # the run was in trouble from the start, and its score broke later
        first = min(broke, key=lambda f: f.onset or 0.0)  # all in one series, so on one clock
        onset = _onset_at(first, first.onset or 0.0, clock_named(first.clock))
    spot = None if file is None else position(file, onset.clock, diagnosis.run)
    series = diagnosis.run.series.get(best.metric)
    scored = best.step is not None and series is not None and series.clock == onset.clock and spot == best.step
    if onset.at is not None and spot is not None and spot > onset.at and not scored:
        return Option(
            "A", title, False,
            f"the nearest file, {best.path}, is of {onset.clock} {spot:,.10g}, after the trouble began ({onset.words})",
        )  # fmt: skip
    return Option(
        "A", title, True, best.why,
        length=0.0, hours=0.0, cost="nothing is trained",
        risk=_selection(best, "up" if series is None else series.better), proves="nothing about the cause; it saves what was learned",
        checkpoint=best.path, at=spot,
        todo=(f"Evaluate {best.path} once on data that did not choose it.",),
    )  # fmt: skip


def _raw_weights(diagnosis: Diagnosis, choice: Choice) -> Option | None:
    """Where the average is at fault and training went well, the raw weights hold what was learned, whatever the scores say.

    None: that is not so here, and the best checkpoint is looked for.
    """
    fault = next((t for t in choice.by("apply", "try", "code") if t.cause in AVERAGE), None)
    run, clock = diagnosis.run, diagnosis.progress.clock
    train = {name for name, series in run.series.items() if series.split == "train"}
    if fault is None or any(f.severity == "ill" and f.series in train for f in diagnosis.findings):
        return None
    title = "Use the raw weights of the last checkpoint"
    held = [
        (at, c)
        for c in run.checkpoints
        if c.exists and "raw" in c.kinds and (at := position(c, clock, run)) is not None
    ]
    if not held:
        why = f"the average is at fault ({fault.cause}), and no checkpoint is known to hold the raw weights"
        return Option("A", title, False, why)
    at, file = max(held, key=lambda one: (one[0], -len(one[1].kinds)))
    return Option(
        "A", title, True,
        f"the average is at fault ({fault.cause}); the raw weights are as training left them, at {clock} {at:,.10g}",
        length=0.0, hours=0.0, cost="nothing is trained",
        risk="the logged scores may be those of the average: what the raw weights score is not known yet",
        proves=f"{fault.cause}, if the raw weights score clearly better than the averaged ones",
        checkpoint=file.path, at=at,
        todo=(f"Evaluate the raw weights in {file.path} beside the averaged ones.",),
    )  # fmt: skip


def _selection(best: BestCheckpoint, better: str) -> str:
    """How much of the best value is luck: the best of k equal evaluations lies above their mean (ST-03)."""
    if best.equal < 2 or not best.noise:
        return "one evaluation chose it; expect a little less on new data"
    # Blom's approximation of the expected largest of k normal values.
    luck = best.noise * NormalDist().inv_cdf((best.equal - 0.375) / (best.equal + 0.25))
    fair = best.value + (luck if better == "down" else -luck)
    return (
        f"chosen among {best.equal} evaluations that are equal within noise: "
        f"expect about {fair:.4g}, not {best.value:.4g}"
    )


def _retrain(diagnosis: Diagnosis, choice: Choice, pace: Pace | None) -> Option:
    title = "Train again with the corrected settings"
    code = choice.by("code")
    progress = diagnosis.progress
    length = planned_total(diagnosis) or progress.at
    hours = None if pace is None or length is None else pace.hours(length)
    cost = _cost(length, progress.clock, hours, pace)
    if not choice.edits:
        return Option("B", title, False, _no_config(choice), length, progress.clock, hours, cost)
    tried = [t for t in choice.by("apply", "try") if not t.proved]
    todo = tuple(f"Before it: {t.remedy.text} ({', '.join(map(str, t.places[:2])) or t.cause})" for t in code)
    return Option(
        "B", title, True,
        "each changed setting exists and differs from now, nothing shows that the run ignores it, and the file loads as before",
        length, progress.clock, hours, cost,
        risk=_risk(tried, code), proves=_proves(choice), edits=choice.edits, todo=todo,
    )  # fmt: skip


def unloadable(diagnosis: Diagnosis) -> Finding | None:
    """The first place where a config stops being what it is called: what comes after it may be missing here."""
    return next((f for f in diagnosis.findings if f.id == "syntax" and f.grade == "is" and f.places), None)


def _no_config(choice: Choice) -> str:
    code = choice.by("code")
    if code and all(areas().get(t.cause) == "evaluation" for t in code):
        return (
            "not needed yet: the training is not in question, its evaluation is. "
            "Mend that, and evaluate the checkpoints there are, before anything is trained again"
        )
    if code:
        where = ", ".join(str(p) for p in code[0].places[:2])
        return f"{code[0].by_hand}: {code[0].remedy.text}" + (f" ({where})" if where else "")
    if choice.kept:
        return f"{choice.kept}, and no other cause is sure enough to change a setting for it"
    if choice.by("open"):
        return "no cause is sure enough to change a setting for it; its trial comes first"
    if choice.left:
        return f"no remedy is left: {choice.left[0].why}"
    return "no known cause explains this, so there is no setting to change"


def _risk(tried: Sequence[Treatment], code: Sequence[Treatment]) -> str:
    if code:
        return "the settings alone do not mend what the code does; without the code change this run is ill as well"
    if tried:
        t = tried[0]
        return f"{t.cause} has {share(t.probability)}: in {share(1 - t.probability)} of such cases something else is the cause and this run fails too"
    return "what else may be wrong shows only in the next run"


def _proves(choice: Choice) -> str:
    told = [f"{t.cause}, if {t.remedy.predicts}" for t in choice.by("apply", "try") if t.remedy.predicts]
    return "; ".join(told[:3])


def _resume(diagnosis: Diagnosis, choice: Choice, pace: Pace | None) -> Option:
    title = "Resume before the trouble began"
    treated = choice.by("apply", "try", "code")
    if not treated:
        return Option("C", title, False, "nothing would be changed, so it would go the same way")
    deaf = next((f for f in diagnosis.findings if f.id == "resume-never-loaded"), None)
    if deaf is not None:
        return Option("C", title, False, f"this script does not resume: {deaf.summary}")
    onset = onset_of(diagnosis, treated)
    if onset.at is None:
        return Option("C", title, False, f"there is no sound stretch to resume from: {onset.words}")
    files = [
        (spot, c)
        for c in diagnosis.run.checkpoints
        if c.exists and (spot := position(c, onset.clock, diagnosis.run)) is not None
    ]
    before = [(spot, c) for spot, c in files if spot <= onset.sound]
    if not before:
        return Option("C", title, False, _no_file(diagnosis.run, onset, files))
    spot = max(s for s, _ in before)
    file = max((c for s, c in before if s == spot), key=lambda c: len(c.kinds))
    progress = diagnosis.progress
    total = planned_total(diagnosis)
    length = None if total is None or progress.clock != onset.clock else total - spot
    hours = None if pace is None or length is None else pace.hours(length)
    checks = resume_test(diagnosis.run, file.path, choice.edits)
    failed = next((check for check in checks if check.ok is False), None)
    if failed is not None:
        return Option(
            "C", title, False, f"{file.path} ({onset.clock} {spot:,.10g}): not that {failed.name}: {failed.text}"
        )
    unsure = [f"not known whether {check.name}: {check.text}" for check in checks if check.ok is None]
    sure = "; ".join(check.text for check in checks[1:] if check.ok)
    return Option(
        "C", title, True,
        f"the last checkpoint before {onset.words}, at {onset.clock} {spot:,.10g}; {sure}",
        length, progress.clock, hours, _cost(length, progress.clock, hours, pace),
        risk="; ".join([*unsure, _risk([t for t in treated if not t.proved], choice.by("code"))]),
        proves=_proves(choice), checkpoint=file.path, at=spot, edits=choice.edits,
    )  # fmt: skip


def _no_file(run: Run, onset: Onset, files: Sequence[tuple[float, Checkpoint]]) -> str:
    if files:
        first = min(spot for spot, _ in files)
        last = "" if onset.at is None or first >= onset.at else f" (the last row before it is of {onset.sound:,.10g})"
        return (
            f"no checkpoint from before {onset.words}{last}: the first that lies here is of {onset.clock} {first:,.10g}"
        )
    said = sum(not c.exists for c in run.checkpoints)
    if said:
        return f"no checkpoint lies here; the log names {said}, of which none was found on disk"
    return "no checkpoint lies here"


def planned_total(diagnosis: Diagnosis) -> float | None:
    """The length that the run really has on the clock of its log; a declared one may never be reached."""
    progress = diagnosis.progress
    if progress.clock != "step" or not any(f.id == "run-shorter-than-declared" for f in diagnosis.findings):
        return progress.total
    knobs = study_of(diagnosis).maybe("knobs")
    if knobs is None:
        return progress.total
    length = length_of(knobs, diagnosis.run.facts)
    counts_micro = "run.total_steps" in knobs and knobs["run.total_steps"].unit == "micro_steps"
    if length.total is None:
        return progress.total
    return float(length.total * (length.accumulation if counts_micro else 1.0))


def onset_of(diagnosis: Diagnosis, treated: Sequence[Treatment]) -> Onset:
    """Where what is treated (or, without any, what is ill) begins. A crash begins at the end of the record."""
    signs = [f for t in treated for f in t.signs] if treated else [f for f in diagnosis.findings if f.severity == "ill"]
    progress = diagnosis.progress
    clock = clock_named(progress.clock)
    if not signs:
        return Onset(None, clock, "the record does not say when it began")
    if all(f.id in ("crashed", "onecycle-overrun") for f in signs) and progress.at is not None:
        return Onset(progress.at, clock, "the crash", progress.at)
    proved = next((f for f in signs if f.onset is None), None)
    if proved is not None:
        return Onset(None, clock, f"{proved.id} acts from the first step")
    return _first_of(diagnosis, signs, clock)


def _first_of(diagnosis: Diagnosis, signs: Sequence[Finding], clock: ClockName | None) -> Onset:
    """The earliest of these signs: on their own clock where they share one, else on the plan's where they can be moved there."""
    run = diagnosis.run
    own = list(dict.fromkeys(clock_named(f.clock) for f in signs))
    asked = [c for c in (own if len(own) == 1 else (clock, *own)) if c is not None]
    placed = max(
        ((c, began(run, signs, c)) for c in asked), key=lambda one: len({f.id for _, f in one[1]}), default=None
    )
    if placed is None or not placed[1]:
        return Onset(None, clock, "the record does not say when it began")
    there, found = placed
    at, first = found[0]
    if from_start(run, first):
        return Onset(None, there, f"{first.id} is there from the first value on")
    # What else is ill by then counts as well, treated or not; so does a loss on its way to NaN, which the NaN outdoes.
    sick = (f for f in (*signs, *diagnosis.findings) if f.severity == "ill" or f.id == "diverged")
    ill = began(run, {id(f): f for f in sick}.values(), there)
    ends = [
        e for spot, f in ill if spot <= at and not from_start(run, f) and (e := sound_until(run, f, there)) is not None
    ]
    return replace(_onset_at(first, at, there), sound=min(ends, default=math.nextafter(at, -math.inf)))


def _onset_at(finding: Finding, at: float, clock: ClockName | None) -> Onset:
    return Onset(at, clock, f"the onset of {finding.id} ({clock} {at:,.10g})")


def clock_named(name: str | None) -> ClockName | None:
    """A clock by its name: findings carry it as text."""
    return next((clock for clock in CLOCKS if clock == name), None)


def _cost(length: float | None, clock: str | None, hours: float | None, pace: Pace | None) -> str:
    if length is None or clock is None:
        return "length unknown: the record does not say how long the run was planned"
    words = f"{length:,.10g} {clock.replace('_', '-')}s, {hours_words(hours)}"
    return (
        f"{words} at the pace of this run ({pace.source})"
        if pace is not None
        else f"{words}: the record holds no wall clock"
    )
