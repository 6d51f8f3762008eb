"""What the next run is expected to show, by step. Nothing here is invented: each band says what it comes from.

Three sources are used. The planned learning rate of the corrected settings, where the old run's log followed
its own plan. The old run's own values before the trouble began. Levels that any sound run must pass: what a
model that ignores its input scores, and the best that the ill run reached. Where none of them applies there is
no band, and the plan says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wheeltapper.finding import Edit, Finding, Unknown
from wheeltapper.judge.best import worthless
from wheeltapper.judge.model import Diagnosis
from wheeltapper.judge.schedule import in_ticks
from wheeltapper.reading.record import ClockName
from wheeltapper.remedy.choose import Choice, areas
from wheeltapper.remedy.compared import FEWEST, SPREAD, judged, rounded
from wheeltapper.remedy.options import Onset, Option, clock_named, onset_of, planned_total
from wheeltapper.remedy.plan import Band, SignThen
from wheeltapper.remedy.studied import study_of
from wheeltapper.run.model import Run, Series
from wheeltapper.run.onsets import from_start
from wheeltapper.settings.knobs import Knobs
from wheeltapper.settings.tree import ConfigTree
from wheeltapper.simulate.plan import Plan as LrPlan
from wheeltapper.simulate.plan_from_knobs import planned_lr
from wheeltapper.study import Study
from wheeltapper.study.statistics import badness, noise_of

SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.95)  # of the plan: where the learning rate is looked at
ROUNDED = 0.01  # logs print two or three digits of a rate
# A sign that is there from the first value on is judged after a quarter of the run: warm-ups and the noise of
# the first evaluations are over by then, three quarters of the cost are not yet spent.
EARLY = 0.25


# Mended, these write another loss: divided, turned about, or of probabilities taken once.
OTHER_LOSS = frozenset({"accumulation-not-divided", "wrong-loss-sign", "double-softmax"})
LOSS_KNOBS = ("loss.", "augment.", "diffusion.", "curriculum.")
# Of the causes in data and objective, these leave the loss what it was before the trouble.
SAME_LOSS = frozenset({"bad-data-from-step", "nan-batch", "loss-not-finite"})


# Times: a rate lowered by more was out of all practice, and says nothing of how long a usual one takes to come as far.
MOST_SLOWER = 10.0


@dataclass(frozen=True, slots=True)
class Next:
    """The next run as far as it is known: its settings, and how much slower it learns."""

    diagnosis: Diagnosis
    choice: Choice
    option: Option
    knobs: Knobs | None  # with the edits made
    configs: tuple[ConfigTree, ...]  # with the edits made

    @property
    def run(self) -> Run:
        return self.diagnosis.run

    @property
    def study(self) -> Study:
        return study_of(self.diagnosis)

    @property
    def slower(self) -> float:
        """By how much the rate was lowered: as much area under it takes that many times the steps (PRG-02)."""
        for edit in self.choice.edits:
            if edit.knob in ("optimizer.lr", "schedule.max_lr") and _number(edit.old) and _number(edit.new):
                return max(1.0, float(edit.old) / float(edit.new))
        return 1.0

    @property
    def total(self) -> float | None:
        return planned_total(self.diagnosis)

    def total_on(self, clock: str | None) -> float | None:
        """The length of the run on a clock, where that is the clock of its plan."""
        return self.total if clock == self.diagnosis.progress.clock else None

    @property
    def onset(self) -> Onset:
        return onset_of(self.diagnosis, self.choice.by("apply", "try", "code"))

    def comparable(self, series: Series) -> bool:
        """Whether the old values of a series say anything about the new ones.

        A loss that is written otherwise, or made harder, is another quantity; on other data the training loss is.
        """
        treated = {t.cause for t in self.choice.by("apply", "try", "code")}
        if series.quantity != "loss":
            return True
        if treated & OTHER_LOSS or any(e.knob.startswith(LOSS_KNOBS) for e in self.choice.edits):
            return False
        if any(areas().get(cause) in ("objective", "curriculum") for cause in treated - SAME_LOSS):
            return False
        data = any(areas().get(cause) == "data" for cause in treated - SAME_LOSS)
        return not (data and series.split == "train")

    def judged(self) -> list[Series]:
        """What a reader watches, as far as the old values count."""
        return [series for series in judged(self.study) if self.comparable(series)]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def with_edits(knobs: Knobs | None, edits: Sequence[Edit]) -> Knobs | None:
    """The settings as they will be."""
    if knobs is None:
        return None
    values = dict(knobs)
    for edit in edits:
        if edit.knob in values and edit.new is not None:
            values[edit.knob] = replace(values[edit.knob], value=edit.new, default=False)
    return Knobs(values, knobs.dialect)


def signs_then(following: Next, signs: Sequence[Finding]) -> tuple[SignThen, ...]:
    """The signs of one cause as the plan remembers them."""
    return tuple(_sign_then(following, f) for f in signs)


def _sign_then(following: Next, sign: Finding) -> SignThen:
    series = following.run.series.get(sign.series or "")
    clock = clock_named(sign.clock or (following.diagnosis.progress.clock if sign.id == "crashed" else None))
    return SignThen(sign.id, sign.summary, sign.series, clock, sign.onset, _by(following, sign, series))


def _by(following: Next, sign: Finding, series: Series | None) -> float | None:
    """Where the absence of a sign can be told."""
    if sign.id == "crashed":
        return following.diagnosis.progress.at
    if series is None or sign.onset is None:
        return None
    total = following.total_on(sign.clock)
    if total is None and following.diagnosis.progress.state == "finished":
        total = float(np.nanmax(series.at))
    if from_start(following.run, sign):
        end = total or float(np.nanmax(series.at))
        return float(np.ceil(EARLY * end))
    gap = log_gap(series)
    by = (sign.onset + max(0.25 * sign.onset, 5 * gap)) * following.slower
    if total is None and following.slower > MOST_SLOWER:
        total = float(np.nanmax(series.at))
    return float(min(np.ceil(by), total)) if total else float(np.ceil(by))


def log_gap(series: Series) -> float:
    steps = np.diff(np.unique(series.at[np.isfinite(series.at)]))
    return float(np.median(steps)) if len(steps) else 1.0


def bands(following: Next) -> tuple[Band, ...]:
    """Every expected value, in the order of the run."""
    if following.option.letter == "A":
        return ()
    rates = (list(_rate(following)) or list(_warmed(following))) if following.choice.edits else []
    found = [
        *rates,
        *_resumed(following),
        *_healthy(following),
        *_above_trivial(following),
        *_old_best(following),
    ]
    return tuple(sorted(found, key=lambda b: (b.clock, b.at)))


def _rate(following: Next) -> Iterator[Band]:
    """The learning rate as the corrected settings plan it, where the old log followed its own plan."""
    study = following.study
    match, series = study.maybe("lr_match"), study.maybe("lr")
    if match is None or series is None or match.verdict != "matches" or following.knobs is None:
        return
    plan = _new_rate(following)
    if plan is None:
        return
    ticks = in_ticks(plan, series, _whole(following.run.fact("steps_per_epoch")), _accumulation(following.knobs))
    if ticks is None or not len(ticks) or series.at[-1] <= 0:
        return
    per = float(ticks[-1] / series.at[-1])
    gap = log_gap(series)
    lr = plan.lr()
    start = following.option.at or 0.0
    end = following.total_on(series.clock) or plan.n / per
    for share in SHARES:
        at = float(round(share * end))
        if at <= start or at <= 0 or at * per > plan.n:
            continue
        low, high = int(max(0, np.floor((at - gap) * per) - 1)), int(min(plan.n, np.ceil((at + gap) * per) + 1))
        values = lr[low : high + 1]
        if not len(values) or not np.all(np.isfinite(values)) or plan.loose_until > low:
            continue
        least, most = float(values.min()), float(values.max())
        yield Band(
            series.name, series.clock, at, f"the planned rate of the corrected settings ({plan.name})",
            rounded(least * (1 - ROUNDED)), rounded(most * (1 + ROUNDED)), gap,
        )  # fmt: skip


def _warmed(following: Next) -> Iterator[Band]:
    """Where a schedule is computed in code: the end of the new warm-up, as the old log rose towards its own."""
    edit = next((e for e in following.choice.edits if e.knob == "schedule.warmup"), None)
    series = following.study.maybe("lr")
    told = None if following.knobs is None else following.knobs.value("optimizer.lr")
    if edit is None or series is None or not (_number(edit.old) and _number(edit.new) and _number(told)):
        return
    peak = float(told or 0.0)
    at, values = series.at[series.finite], series.values[series.finite]
    share = values / peak
    rising = (share > 0.01) & (share < 0.99) & (at > 0)
    if int(rising.sum()) < FEWEST:
        return
    per = share[rising] * float(edit.old) / at[rising]  # units of the warm-up for one position of the log
    each = float(np.median(per))
    if each <= 0 or float(np.max(np.abs(per / each - 1))) > 0.05:  # not a straight rise from zero to the peak
        return
    end = float(edit.new) / each
    gap = log_gap(series)
    low = peak * max(0.0, 1 - 2 * gap / end) * (1 - ROUNDED)
    source = f"a straight warm-up to {peak:g}, as the old run's log rose, over {edit.new:g} instead of {edit.old:g}"
    spot = float(np.ceil(end))
    high = rounded(peak * (1 + ROUNDED))
    yield Band(series.name, series.clock, spot, source, rounded(low), high, gap)


def _new_rate(following: Next) -> LrPlan | None:
    assert following.knobs is not None
    facts: Mapping[str, Any] = following.run.facts
    if any(e.knob in ("run.total_steps", "run.epochs") for e in following.choice.edits):
        facts = {k: v for k, v in facts.items() if k not in ("total_steps", "total_epochs")}
    per_epoch = _whole(following.run.fact("steps_per_epoch"))
    plan = planned_lr(following.knobs, facts, steps_per_epoch=per_epoch, trees=following.configs)
    return None if isinstance(plan, Unknown) else plan


def _resumed(following: Next) -> Iterator[Band]:
    """Right after a resume the scores are those of the checkpoint, whatever setting was changed."""
    option, clock = following.option, following.onset.clock
    if option.letter != "C" or option.at is None or clock is None:
        return
    for series in following.judged():
        track = series.on(clock)
        if track is None or series.window in ("running", "epoch"):
            continue
        good = series.finite & np.isfinite(track)
        past = good & (track <= option.at)
        if int(past.sum()) < FEWEST:
            continue
        sigma = noise_of(series.values[past]).sigma
        level = float(np.median(series.values[past][-3:]))
        gap = log_gap(series)
        source = f"the old run's own values before {option.at:,.10g}, ± {SPREAD:g} times their noise"
        yield _one_sided(series, clock, option.at + gap, level, SPREAD * sigma, source, gap)


def _healthy(following: Next) -> Iterator[Band]:
    """Past the old onset the scores are no worse than they were right before it."""
    onset = following.onset
    if onset.at is None or onset.clock is None:
        return
    broke = onset.at * following.slower
    tracks = [track for series in judged(following.study) if (track := series.on(onset.clock)) is not None]
    # The next run is as long as planned, or as the old one was; what lies beyond would never be seen.
    end = following.total_on(onset.clock) or max((float(np.nanmax(t)) for t in tracks), default=0.0)
    at = min(float(np.ceil(broke * 1.25)), end)
    if at <= broke:
        return
    slow = f"; {following.slower:g} times later, as the rate is that much lower" if following.slower > 1 else ""
    for series in following.judged():
        track = series.on(onset.clock)
        if track is None:
            continue
        past = series.finite & onset.before(track)
        if int(past.sum()) < FEWEST:
            continue
        values = series.values[past]
        sigma = noise_of(values).sigma
        bad = badness(values, series.better)
        level = float(np.median(values[np.argsort(bad)[: max(3, len(bad) // 5)]]))
        source = f"the old run's own best values before {onset.words}, ± {SPREAD:g} times their noise{slow}"
        yield _one_sided(
            series,
            onset.clock,
            at,
            level,
            SPREAD * sigma,
            source,
            log_gap(series) if series.clock == onset.clock else 0.0,
        )


def _above_trivial(following: Next) -> Iterator[Band]:
    """A score must pass what a model scores that ignores its input."""
    for verdict in following.diagnosis.validity:
        series = following.run.series.get(verdict.series)
        ill = [f for f in following.diagnosis.findings if f.severity == "ill" and f.series == verdict.series]
        total = None if series is None else following.total_on(series.clock)
        if verdict.baseline is None or series is None or not ill or total is None:
            continue
        edge, margin = _clear_of(series, verdict.baseline)
        trivial = (
            "plain interpolation gives"
            if series.quantity in ("psnr", "ssim")
            else "a model scores that ignores its input"
        )
        source = f"what {trivial} ({verdict.baseline:.4g}), and {margin}"
        better = "down" if series.better == "down" else "up"
        at = float(np.ceil(EARLY * total))
        low, high = (edge, None) if better == "up" else (None, edge)
        yield Band(series.name, series.clock, at, source, low, high, log_gap(series))


def _clear_of(series: Series, trivial: float) -> tuple[float, str]:
    """The level at which a score is clear of the trivial one, and how that is known."""
    if series.quantity == "accuracy":
        # The same room that the sign at-chance leaves: small sets and uneven classes score a little above chance.
        return min(2 * trivial, trivial + (6.0 if series.unit == "%" else 0.06)), "the room that small sets need"
    margin = SPREAD * noise_of(series.values[series.finite]).sigma
    edge = trivial - margin if series.better == "down" else trivial + margin
    return rounded(edge), f"{SPREAD:g} times the noise"


def _old_best(following: Next) -> Iterator[Band]:
    """At its end the mended run is no worse than the ill one was at its best."""
    best = following.diagnosis.best
    series = None if best is None else following.run.series.get(best.metric)
    total = None if series is None else following.total_on(series.clock)
    if best is None or best.noise is None or series is None or total is None:
        return
    if worthless(following.diagnosis.findings, best.metric, best.step) is not None or not following.comparable(series):
        return
    way = "less" if series.better == "up" else "plus"
    source = f"the best {best.metric} of the old run, {best.value:.4g}, {way} {SPREAD:g} times its noise"
    yield _one_sided(series, series.clock, total, best.value, SPREAD * best.noise, source, log_gap(series))


def _one_sided(
    series: Series, clock: ClockName, at: float, level: float, margin: float, source: str, within: float
) -> Band:
    if series.better == "down":
        return Band(series.name, clock, at, source, None, rounded(level + margin), within)
    return Band(series.name, clock, at, source, rounded(level - margin), None, within)


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1 else None


def _accumulation(knobs: Knobs) -> int:
    return max(1, _whole(knobs.value("batch.accumulation")) or 1)
