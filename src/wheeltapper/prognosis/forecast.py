"""What to expect of the rest of the run: bands, the chance of reaching a target, the time left.

Bands come from refitting at earlier cut-offs and seeing how far the fits were off (PRG-04): a fit's own error bars
are too narrow with correlated noise. It refuses (PRG-05) across restarts and change points, with too few evaluations,
while the learning rate warms up, when its schedule ahead is not known to go on as it did, and at a ceiling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wheeltapper.finding import Finding, Unknown
from wheeltapper.prognosis.fit import Fit, fits
from wheeltapper.run.model import Series
from wheeltapper.signals import Signals
from wheeltapper.signals.statistics import badness, noise_of
from wheeltapper.sources.record import Floats

FEWEST = 10  # evaluations after the warm-up (PRG-05)
CUTS = (0.5, 0.6, 0.7, 0.8)  # of the past: where the backtest stands
COVER = 0.9
SPREAD = 1.645  # normal 95th percentile: half of a 90 % band
AHEAD = 1.0  # never further ahead than the record is long


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
        middle = float(np.interp(by, self.at, self.middle))
        half = max(float(np.interp(by, self.at, self.high)) - middle, 1e-12)
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
    signals: Signals, findings: tuple[Finding, ...] = (), *, series: Series | None = None
) -> Forecast | Unknown:
    """`series`, else the main validation score (else its loss, else the training loss), to the planned end."""
    series = series or next(
        (
            s
            for s in (signals.maybe("main_metric"), signals.maybe("val_loss"), signals.maybe("train_loss"))
            if s is not None
        ),
        None,
    )
    if series is None or series.better not in ("up", "down"):
        return Unknown("no score with a direction is logged", ("a score on held-out data",))
    if any(f.severity == "ill" for f in findings):
        return Unknown("the run is ill: its past is no guide to its future", ("a mended run",))
    progress = signals.get("progress")
    if progress.total is None or progress.clock is None:
        return Unknown("the planned length is not known", ("total steps or epochs",))
    track = series.on(progress.clock)
    if track is None:
        return Unknown(f"{series.name} is not placed on the clock of the plan ({progress.clock})", (progress.clock,))
    good = series.finite & np.isfinite(track)
    refusal, start = _refuse(signals, track[good])
    if refusal:
        return Unknown(refusal, ())
    x, bad = track[good], badness(series.values[good], series.better)
    keep = x >= start
    x, bad = x[keep], bad[keep]
    if len(x) < FEWEST:
        return Unknown(f"{len(x)} evaluations after the warm-up; ten are the least", ("more evaluations",))
    return _forecast(series, x, bad, float(progress.total), progress.clock, signals)


def _refuse(signals: Signals, at: Floats) -> tuple[str, float]:
    """Why no extrapolation may be made, and the position from which the curve may be fitted."""
    run = signals.run
    if any(s.kind == "resume" for s in run.segments):
        return "the run was resumed: the curve before is not the curve after", 0.0
    shape = signals.maybe("lr_shape")
    if shape is None:
        return "", float(at[0]) if len(at) else 0.0
    if shape.still_warming:
        return "the learning rate still warms up", 0.0
    if shape.jumps or shape.restarts or shape.cuts:
        return "the learning rate changes in steps, and each step moves the curve", 0.0
    if shape.kind in ("decay", "one_cycle") and shape.decay is not None and shape.last > 0.2 * shape.peak:
        return "most of the learning rate's decay is still ahead, and annealing moves the curve", 0.0
    return "", float(shape.warmup_end or (at[0] if len(at) else 0.0))


def _forecast(series: Series, x: Floats, bad: Floats, total: float, clock: str, signals: Signals) -> Forecast | Unknown:
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
    low, high = _ordered(series, middle, half)
    assumes = ["no setting is changed", "the learning rate goes on as it did"]
    if total > end:
        assumes.append(f"the plan goes to {total:g}; a forecast beyond {end:g} would be longer than the record")
    return Forecast(
        series=series.name, clock=clock, at=tuple(ahead.tolist()), low=low, middle=tuple(badness(middle, series.better).tolist()), high=high,
        family=fit.family, backtest=miss, noise=sigma, assumes=tuple(assumes), seconds_left=_seconds(signals, total), better=series.better,
    )  # fmt: skip


def _ordered(series: Series, middle: Floats, half: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    edges = badness(middle - half, series.better), badness(middle + half, series.better)
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


def _seconds(signals: Signals, total: float) -> float | None:
    """Time left at the pace of the last half of the record, from wall clocks that are logged."""
    progress = signals.get("progress")
    for series in signals.run.series.values():
        seconds, track = series.clocks.get("second"), series.on(progress.clock)
        if seconds is None or track is None or len(series) < 4:
            continue
        half = len(series) // 2
        done, took = float(track[-1] - track[half]), float(seconds[-1] - seconds[half])
        if done > 0 and took > 0 and math.isfinite(took):
            return max(0.0, (total - float(track[-1])) / done * took)
    return None
