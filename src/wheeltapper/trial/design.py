"""The choices of a trial, each by its rule in KNOWLEDGE §15: what is measured, from where, how long, how often."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal, cast

import numpy as np

from wheeltapper.errors import InputError
from wheeltapper.finding import Edit, Finding
from wheeltapper.judge.model import Diagnosis
from wheeltapper.reading.record import ClockName
from wheeltapper.remedy.studied import study_of
from wheeltapper.rules.causes import causes
from wheeltapper.rules.signs import signs
from wheeltapper.run.model import Run, Series
from wheeltapper.run.onsets import began, position
from wheeltapper.study import Study
from wheeltapper.study.statistics import noise_of
from wheeltapper.trial.measure import curve_of, endpoint, position_of, shows
from wheeltapper.trial.model import Fork, Rule

# Signs that are there or not there. Those among them that mean "not learned" hang by a threshold, which one seed passes and the
# next does not: the metric itself is compared, as for all others, wherever it is a number.
ABRUPT = (
    "not-finite", "hidden-nan", "diverged", "collapsed", "at-chance", "at-prior", "stuck-from-start", "never-left-zero",
    "scale-collapse", "crashed", "constant-metric", "loss-exactly-zero", "spiked",
)  # fmt: skip
# Of these, the ones that begin at a step and stay: an arm may be cut once the original showed them. The others mean
# "not yet learned", which a healthy run shows as well when it is cut early.
BEGIN = ("not-finite", "hidden-nan", "diverged", "collapsed", "scale-collapse", "crashed", "spiked")
# Knobs that act from the first step on: a fork from a later checkpoint would carry what they did.
FROM_THE_START = ("schedule.warmup", "model.", "data.", "finetune.", "optimizer.name")
SHARES = (0.125, 0.25, 0.375, 0.5, 0.75, 1.0)  # lengths tried, as a part of the original
LAST = 3  # evaluations averaged for the endpoint (TRL-08)
MATTERS = 0.005  # of the endpoint's size: a smaller difference is nothing to a user, whatever its p
LARGE = 0.2  # of the endpoint's size: a difference of a fifth matters to everybody, however noisy the run was
MOST_PAIRS = 8  # d = 1.5 at power 0.9 needs 7 pairs (TRL-05); smaller effects are not worth a default trial


def leading_symptom(diagnosis: Diagnosis, only: str | None = None, tried: Collection[str] = ()) -> Finding | None:
    """The ill sign that a trial must make go away: the one asked for, else an abrupt one, else the first. Of `tried` causes,
    one that they can bring about: another sign would stay, or come and go, whatever is done about them."""
    known = {sign.id for sign in signs()}
    ill = [f for f in diagnosis.findings if f.severity == "ill" and f.id in known]
    if only == "none":
        return None  # the metric alone is compared, whether or not the control shows the sign
    if only is not None:
        found = [f for f in diagnosis.findings if f.id == only and f.id in known]
        if not found:
            shown = ", ".join(dict.fromkeys(f.id for f in ill)) or "none"
            raise InputError(f"the run does not show the sign {only!r}.", do=f"Signs that make it ill: {shown}.")
        return found[0]
    can = {sign for cause in causes() if cause.id in tried for sign in cause.explains}
    ill = [f for f in ill if not can or f.id in can]
    return next((f for f in ill if f.id in ABRUPT), ill[0] if ill else None)


def choose_metric(diagnosis: Diagnosis, symptom: Finding | None, named: str | None) -> Series:
    """The endpoint: the one named, else the first score that can be believed, else a validation loss, else training's."""
    run = diagnosis.run
    if named is not None:
        series = run.series_named(named)
        if series is None:
            near = ", ".join(sorted(run.series)[:12])
            raise InputError(f"the run has no series {named!r}.", do=f"It has: {near}.")
        return series
    study = study_of(diagnosis)
    doubtful = {v.series for v in diagnosis.validity if v.valid == "no"}
    offered: list[Series] = [*(study.maybe("val_metrics") or ()), *_maybe(study, "val_loss", "train_loss")]
    of_symptom = run.series_named(symptom.series) if symptom is not None and symptom.series else None
    if of_symptom is not None and of_symptom.better in ("up", "down") and of_symptom.split in ("val", "test"):
        return of_symptom  # also where it cannot be believed: whether it can be again is the question
    offered = [s for s in offered if s.name in run.series]
    if not offered:
        raise InputError(
            "the run has neither a metric nor a loss to compare by.",
            do="Name a series with --metric, or log one with wheeltapper.trial.step(loss=...).",
        )
    return next((s for s in offered if s.name not in doubtful), offered[0])


def _maybe(study: Study, *names: str) -> list[Series]:
    return [found for name in names if (found := study.maybe(name)) is not None]


def choose_clock(diagnosis: Diagnosis, metric: Series) -> tuple[str, float]:
    """The clock that repeats are followed on, and how far the original came on it.

    Rows that carry steps only because a checkpoint told them do so in no repeat before its first checkpoint; there
    the clock of the metric's own rows is taken.
    """
    progress, run = diagnosis.progress, diagnosis.run
    if progress.clock is not None and any(series.clock == progress.clock for series in run.series.values()):
        return progress.clock, progress.at or 0.0
    return metric.clock, position_of(run, metric.clock)


def choose_rule(
    symptom: Finding | None, metric: Series, *, arms: int, alpha: float, repeats: int | None, delta: float | None,
    better: Literal["up", "down"] | None = None,
) -> Rule:  # fmt: skip
    """The decision rule. It is written into the ledger before the first arm runs, and not touched after."""
    kind: Literal["symptom", "difference"] = "symptom" if symptom is not None and symptom.id in BEGIN else "difference"
    end = endpoint(curve_of(metric, metric.clock, None), LAST)
    if symptom is not None and symptom.id in ABRUPT and (end is None or not math.isfinite(end)):
        kind = "symptom"  # nothing can be subtracted from it
    if better is None:
        better = "up" if metric.better == "up" else "down"
    return Rule(
        kind=kind,
        metric=metric.name,
        better=better,
        delta=delta if delta is not None or kind == "symptom" else what_matters(metric),
        symptom="" if symptom is None else symptom.id,
        alpha=alpha,
        arms=max(1, arms),
        most_pairs=repeats or MOST_PAIRS,
        last=LAST,
        original=end if kind == "difference" and end is not None and math.isfinite(end) else None,
    )


def what_matters(series: Series) -> float | None:
    """The smallest difference worth finding: two sigma of the endpoint's own wobble, half a percent of its size at least and
    a fifth at most."""
    values = series.values[series.finite]
    value = endpoint(curve_of(series, series.clock, None), LAST)
    if len(values) < 4:
        return None
    level = abs(value) if value is not None and math.isfinite(value) else float(np.median(np.abs(values)))
    wobble = 2.0 * noise_of(values).sigma / math.sqrt(LAST)
    usual = float(np.median(np.abs(values)))
    most = LARGE * max(level, usual)  # an ill run may wobble by more than all there is to gain
    return float(f"{max(min(wobble, most), MATTERS * level):.2g}") or None


def onset_of(diagnosis: Diagnosis, clock: str) -> float | None:
    """The first onset of anything seen, ill or not: the leading indicator comes before the failure (TRL-02)."""
    first = began(diagnosis.run, (f for f in diagnosis.findings if f.severity != "note"), cast(ClockName, clock))
    return first[0][0] if first else None


def choose_fork(diagnosis: Diagnosis, clock: str, edits: Sequence[Edit], can_resume: bool) -> Fork:
    """The last checkpoint before the leading indicator's onset; else from scratch, with the reason."""
    if not can_resume:
        return Fork(None, 0.0, "the command does not take a checkpoint ({resume}), so every arm starts from scratch")
    early = sorted({e.knob for e in edits if e.knob.startswith(FROM_THE_START)})
    if early:
        return Fork(None, 0.0, f"{', '.join(early)} acts from the first step on, so every arm starts from scratch")
    onset = onset_of(diagnosis, clock)
    placed = []
    for c in diagnosis.run.checkpoints:
        at = position(c, clock, diagnosis.run)
        # Weights alone are no state to fork from: the optimizer would start cold, which is a change of its own.
        if c.exists and at is not None and ("optimizer" in c.kinds or not c.kinds):
            placed.append((at, c.path))
    before = [(at, path) for at, path in placed if onset is None or at < onset]
    if not before:
        why = (
            "no checkpoint with the optimizer's state was kept"
            if not placed
            else f"no checkpoint lies before {onset:g}"
        )
        return Fork(None, 0.0, f"{why}, so every arm starts from scratch")
    at, path = max(before)
    where = "" if onset is None else f", the last before {clock} {onset:g} where the first sign is seen"
    return Fork(path, at, f"the checkpoint of {clock} {at:g}{where}")


def choose_length(
    diagnosis: Diagnosis, rule: Rule, clock: str, end: float, fork: Fork, edits: Sequence[Edit], asked: float | None
) -> tuple[float, str]:
    """Up to which position arms run, and why (TRL-04): the shortest part of the original that shows the symptom."""
    run = diagnosis.run
    if end <= 0:
        raise InputError("the record gives no position, so the length of an arm cannot be chosen.", do="Give --steps.")
    if asked is not None:
        return fork.step + asked, f"{asked:g} {clock}s, as asked"
    if rule.kind == "difference":
        return end, "as long as the original: a metric compared early favours the smaller rate"
    if rule.symptom not in BEGIN:
        return end, f"as long as the original: a healthy run cut early could show {rule.symptom} as well"
    symptoms = began(diagnosis.run, (f for f in diagnosis.findings if f.id == rule.symptom), cast(ClockName, clock))
    onset = symptoms[-1][0] if symptoms else 0.0
    least = max(2.0 * (onset - fork.step), _memory(diagnosis, edits, clock))
    for share in SHARES[:-1]:
        length = fork.step + share * (end - fork.step)
        if (
            share * (end - fork.step) >= least
            and length > onset
            and shows(upto(run, clock, length), (rule.symptom,)).ill
        ):
            return _whole(length, clock), (
                f"{share:.0%} of the original: past twice the distance to the onset, and the original shows "
                f"{rule.symptom} by then"
            )
    return end, f"as long as the original: it shows {rule.symptom} only towards its end"


def _whole(length: float, clock: str) -> float:
    return float(math.ceil(length)) if clock in ("step", "micro_step", "sample", "epoch") else length


def _memory(diagnosis: Diagnosis, edits: Sequence[Edit], clock: str) -> float:
    """Steps that the optimizer's second moment or the average needs before a change shows in full."""
    if clock != "step":
        return 0.0
    knobs = study_of(diagnosis).maybe("knobs")
    betas = None if knobs is None else knobs.value("optimizer.betas")
    decay = None if knobs is None else knobs.value("ema.decay")
    need = 0.0
    if (
        any(e.knob.startswith("optimizer.") for e in edits)
        and isinstance(betas, list)
        and len(betas) > 1
        and betas[1] < 1
    ):
        need = 2.0 / (1.0 - betas[1])
    if any(e.knob.startswith("ema.") for e in edits) and isinstance(decay, float) and decay < 1:
        need = max(need, 3.0 / (1.0 - decay))
    return need


def upto(run: Run, clock: str, length: float) -> Run:
    """The record as it stood when the run had come this far."""
    cut = {}
    for name, series in run.series.items():
        track = series.on(clock)  # type: ignore[arg-type]
        cut[name] = series if track is None else series.where(track <= length)
    return replace(run, series=cut)


def seconds_per(run: Run, clock: str) -> float | None:
    """Seconds of one step or epoch, from the record's own clock; None where it tells no time."""
    for series in run.series.values():
        seconds, track = series.clocks.get("second"), series.on(clock)  # type: ignore[arg-type]
        if seconds is None or track is None or len(series) < 4:
            continue
        done, took = float(track[-1] - track[0]), float(seconds[-1] - seconds[0])
        if done > 0 and took > 0 and math.isfinite(took):
            return took / done
    return None
