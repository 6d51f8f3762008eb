"""What to expect of the rest of the run: bands, the chance of reaching a target, the time left.

Bands come from refitting at earlier cut-offs and seeing how far the fits were off (PRG-04): a fit's own error bars
are too narrow with correlated noise. Under a decaying learning rate the rest of the decay brings a gain of its own, which
the curve so far does not show (PRG-02): the band is widened on the better side by the share of the rate that is left times
what was gained. It refuses (PRG-05) across restarts and change points, with too few evaluations, while the learning rate
warms up, and while most of its decay is still ahead. LOG.md has the coverage, by kind of run, and what was tried in vain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wheeltapper.finding import Finding, Unknown
from wheeltapper.prognosis.fit import Fit, fits
from wheeltapper.reading.record import Floats
from wheeltapper.run.model import Series
from wheeltapper.study import Study
from wheeltapper.study.statistics import badness, noise_of

FEWEST = 10  # evaluations after the warm-up (PRG-05)
CUTS = (0.5, 0.6, 0.7, 0.8)  # of the past: where the backtest stands
COVER = 0.9
SPREAD = 1.645  # normal 95th percentile: half of a 90 % band
AHEAD = 1.0  # never further ahead than the record is long
# Measured on 1,972 cuts of 246 finished runs (LOG.md 2026-11-16): with these two a 90 % band covers 93 % of the ends, in the
# worst family of runs 85 %. From half of the peak on it is 81 % there, so the forecast begins later.
LEFT = 0.35  # of the peak rate: above, the rest of the decay decides
FLOOR = 0.04  # of what was gained: no fit of a decaying run is better than that


@dataclass(frozen=True, slots=True)
class Forecast:
    """A score expected at positions still to come, with 90 % bands."""

    series: str
    clock: str
    at: tuple[float, ...]
    low: tuple[float, ...]
    middle: tuple[float, ...]
    high: tuple[float, ...]
    family: str
    backtest: float  # largest miss of the backtest, in the units of the score
    noise: float  # of a single evaluation
    assumes: tuple[str, ...]
    seconds_left: float | None = None
    better: str = "up"
    target: float | None = None  # what was asked for
    chance_of_target: float | None = None  # that the level reaches it by the last position of `at`

    @property
    def lines(self) -> tuple[str, ...]:
        """The forecast in words, for a report."""
        last = len(self.at) - 1
        unit = self.clock.replace("_", "-")
        told = f"{self.series} at {unit} {self.at[last]:g}: {self.middle[last]:.4g}, 90 % between {self.low[last]:.4g} and {self.high[last]:.4g}"
        out = [
            told,
            f"if {' and '.join(self.assumes[:2])} (tested on this run's own past: off by {self.backtest:.2g} at most)",
        ]
        if self.target is not None and self.chance_of_target is not None:
            out.insert(
                0,
                f"the chance that {self.series} reaches {self.target:g} by {unit} {self.at[last]:,.10g} is {_percent(self.chance_of_target)}",
            )
        if self.seconds_left:
            out.append(f"time left at the present pace: {self.seconds_left / 3600:.1f} h")
        return tuple(out)

    def chance(self, target: float, by: float) -> float | None:
        """P(the smoothed score reaches `target` by position `by`); None beyond the forecast."""
        if not self.at or by > self.at[-1] * (1 + 1e-9):
            return None
        low, middle, high = (float(np.interp(by, self.at, edge)) for edge in (self.low, self.middle, self.high))
        half = max(high - middle if target > middle else middle - low, 1e-12)  # the two sides differ
        z = (middle - target) / (half / SPREAD)
        z = z if self.better == "up" else -z
        return 0.5 * math.erfc(-z / math.sqrt(2))


def _percent(chance: float) -> str:
    """A chance in words; bands measured on a few hundred runs say nothing of one in a thousand.

    >>> _percent(0.62), _percent(0.9999), _percent(0.0)
    ('62 %', 'above 99 %', 'below 1 %')
    """
    return "above 99 %" if chance > 0.99 else "below 1 %" if chance < 0.01 else f"{chance:.0%}".replace("%", " %")


def forecast(
    study: Study, findings: tuple[Finding, ...] = (), *, series: Series | None = None
) -> Forecast | Unknown:
    """`series`, else the main validation score (else its loss, else the training loss), to the planned end."""
    series = series or next(
        (
            s
            for s in (study.maybe("main_metric"), study.maybe("val_loss"), study.maybe("train_loss"))
            if s is not None
        ),
        None,
    )
    if series is None or series.better not in ("up", "down"):
        return Unknown("no score with a direction is logged", ("a score on held-out data",))
    if any(f.severity == "ill" for f in findings):
        return Unknown("the run is ill: its past is no guide to its future", ("a mended run",))
    progress = study.get("progress")
    if progress.total is None or progress.clock is None:
        return Unknown("the planned length is not known", ("total steps or epochs",))
    track = series.on(progress.clock)
    if track is None:
        return Unknown(f"{series.name} is not placed on the clock of the plan ({progress.clock})", (progress.clock,))
    good = series.finite & np.isfinite(track)
    refusal, start, left = _refuse(study, track[good])
    if refusal:
        return Unknown(refusal, ())
    x, bad = track[good], badness(series.values[good], series.better)
    keep = x >= start
    x, bad = x[keep], bad[keep]
    if len(x) < FEWEST:
        return Unknown(f"{len(x)} evaluations after the warm-up; ten are the least", ("more evaluations",))
    return _forecast(series, x, bad, float(progress.total), progress.clock, study, left)


def _refuse(study: Study, at: Floats) -> tuple[str, float, float]:
    """Why no extrapolation may be made; the position from which the curve may be fitted; the share of the rate that is
    left to decay (0: it does not decay)."""
    run = study.run
    if any(s.kind == "resume" for s in run.segments):
        return "the run was resumed: the curve before is not the curve after", 0.0, 0.0
    shape = study.maybe("lr_shape")
    if (shape is None or shape.kind == "constant") and len(at) and _cut_ahead(study, float(at[-1])):
        return "the plan cuts the learning rate ahead, and that moves the curve", 0.0, 0.0
    if shape is None:
        return "", float(at[0]) if len(at) else 0.0, 0.0
    if shape.still_warming:
        return "the learning rate still warms up", 0.0, 0.0
    if shape.jumps or shape.restarts or shape.cuts:
        return "the learning rate changes in steps, and each step moves the curve", 0.0, 0.0
    start = float(shape.warmup_end or (at[0] if len(at) else 0.0))
    if shape.kind not in ("decay", "one_cycle"):
        return "", start, 0.0
    left = float(shape.last / shape.peak)
    if left > LEFT:
        why = f"the learning rate is still {left:.0%} of its peak, and the rest of its decay moves the curve"
        return f"{why}: a forecast begins at {LEFT:.0%}", 0.0, 0.0
    return "", start, left


def _cut_ahead(study: Study, now: float) -> bool:
    """Whether the settings plan less than half of the present rate before the end: a log of a level rate cannot show it."""
    plan, progress = study.maybe("lr_plan"), study.get("progress")
    if plan is None or {"steps": "step", "epochs": "epoch"}.get(plan.unit) != progress.clock:
        return False
    ahead = plan.lr()[min(int(now), plan.n) :]
    ahead = ahead[np.isfinite(ahead)]
    return len(ahead) > 1 and float(ahead.min()) < 0.5 * float(ahead[0])


def _forecast(
    series: Series, x: Floats, bad: Floats, total: float, clock: str, study: Study, left: float
) -> Forecast | Unknown:
    span = float(x[-1] - x[0])
    now = (x - x[0]) / span
    candidates = fits(now, bad)
    if not candidates:
        return Unknown(f"{series.name} does not improve; there is nothing to extrapolate", ())
    sigma = noise_of(bad).sigma
    scored = [(miss, fit) for fit in candidates if (miss := _backtest(fit.family, now, bad)) is not None]
    if not scored:
        return Unknown("too short to test a forecast on its own past", ("more evaluations",))
    miss, fit = min(scored, key=lambda pair: pair[0])
    end = min(total, float(x[-1]) + AHEAD * span)
    ahead = np.linspace(float(x[-1]), end, 21)[1:] if end > x[-1] else np.array([float(x[-1])])
    place = (ahead - x[0]) / span
    middle = fit.at(place)
    # Misses grow with the distance ahead, as the backtest's did over its own.
    reach = np.sqrt(np.maximum((place - 1.0) / (1.0 - CUTS[0]), 0.0))
    half = SPREAD * np.hypot(sigma / 2, miss * np.maximum(reach, 0.3))
    annealing = np.zeros_like(half)
    if left > 0:
        k = max(3, len(bad) // 20)
        gained = max(0.0, float(np.median(bad[:3]) - np.median(bad[-k:])))
        half = np.hypot(half, FLOOR * gained)
        annealing = left * gained * (ahead - x[-1]) / max(total - float(x[-1]), 1e-12)
    low, high = _ordered(series, middle, half + annealing, half)
    assumes = [
        "no setting is changed",
        "the learning rate goes on as it did" if left == 0 else "the learning rate decays as planned",
    ]
    if total > end:
        assumes.append(f"the plan goes to {total:g}; a forecast beyond {end:g} would be longer than the record")
    return Forecast(
        series=series.name, clock=clock, at=tuple(ahead.tolist()), low=low, middle=tuple(badness(middle, series.better).tolist()), high=high,
        family=fit.family, backtest=miss, noise=sigma, assumes=tuple(assumes), seconds_left=_seconds(study, total), better=series.better,
    )  # fmt: skip


def _ordered(
    series: Series, middle: Floats, better: Floats, worse: Floats
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    edges = badness(middle - better, series.better), badness(middle + worse, series.better)
    low, high = np.minimum(*edges), np.maximum(*edges)
    if series.unit in ("%", "fraction"):
        top = 100.0 if series.unit == "%" else 1.0
        low, high = np.clip(low, 0.0, top), np.clip(high, 0.0, top)
    return tuple(low.tolist()), tuple(high.tolist())


def _backtest(family: str, now: Floats, bad: Floats) -> float | None:
    """The largest miss of this family when it stood at earlier cut-offs and looked to the end."""
    misses = []
    for cut in CUTS:
        past = now <= cut
        if past.sum() < 6 or (~past).sum() < 2:
            continue
        found: list[Fit] = [fit for fit in fits(now[past] / cut, bad[past]) if fit.family == family]
        if not found:
            continue
        tail = now > 0.9
        seen = float(np.median(bad[tail]))
        told = float(np.median(found[0].at(now[tail] / cut)))
        misses.append(abs(seen - told))
    return max(misses) if misses else None


def _seconds(study: Study, total: float) -> float | None:
    """Time left at the pace of the last half of the record, from wall clocks that are logged."""
    progress = study.get("progress")
    for series in study.run.series.values():
        seconds, track = series.clocks.get("second"), series.on(progress.clock)
        if seconds is None or track is None or len(series) < 4:
            continue
        half = len(series) // 2
        done, took = float(track[-1] - track[half]), float(seconds[-1] - seconds[half])
        if done > 0 and took > 0 and math.isfinite(took):
            return max(0.0, (total - float(track[-1])) / done * took)
    return None
