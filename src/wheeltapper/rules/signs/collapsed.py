"""A validation metric fell back to where it began.

## What it sees
A metric that had clearly risen above its first level and ends back at it (or below).

## Why it matters
The model is no better than untrained; only the checkpoints before the onset are worth keeping.

## How it decides
At least 70 % of the gain is lost and the end lies within a quarter of the gain of the first level; the gain
was real (more than five times the noise of an evaluation, and a percentage point at least), and a share lost a quarter of
its best value. Precision,
recall and scores of parts support, they do not carry. Episode returns wander: they are judged on tenths of
the run, the gain must exceed the spread of single episodes and a fifth of the level, 85 % of it must be
lost, and an episode of the end is worse than one of the best tenth (by ranks, three standard errors). Or they end worse than the untrained agent: in each of the last two tenths an episode is worse than one of the first
tenth with a chance of 75 % or more (by ranks, four standard errors), worse than one of the best tenth as well, and the
median lies lower by the spread of the first episodes. Of 192 public healthy runs the nearest has 70 and 33 %. With a
curriculum that is a watch.

## When it is wrong
A metric whose evaluation broke while the model did not: look at the training loss, and at the validity.

## References
- BigScience, lessons learned (bigscience-workshop/bigscience, train/lessons-learned.md).
- OpenAI Spinning Up, Intro to Policy Optimization ("the loss function means nothing").
- Our simulation of flat, autocorrelated noise: the best of 50 evaluations lies 2.2 sigma above the last
  at the median, 4.0 at the 95th percentile, and ten evaluations without a new best are seen in 99.9 % of
  flat series.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding
from wheeltapper.reading.record import Floats
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.curves import Task, speaks
from wheeltapper.study.statistics import badness, block_medians, fall_from_best, noise_of, p_of_drop, robust_sigma

ID = "collapsed"
LIVE = True
LOST = 0.70
LOST_RETURN = 0.85
ROWS, WORSE = 100, 0.75
OF_BEST = 0.25  # of a share: what began at 45 %, reached 49 % and fell back to 45 % still knows most of what it knew
POINT = 0.01  # a share that never rose by one percentage point had nothing to lose


def look(val_metrics: tuple[Series, ...], task: Task | None = None, shifting: str = "") -> Answer | list[Finding]:
    found = []
    scores = val_metrics[:12]
    for series in scores:
        agent = series.quantity in ("return", "success")
        finding = (_return(series) or _below_start(series, shifting)) if agent else _metric(series)
        if finding is not None:
            found.append(finding)
    drops = {f.series: abs(f.numbers["best"] - f.numbers["last"]) for f in found}
    if found and not speaks([(s, drops[s.name]) for s in scores if s.name in drops], scores, task):
        found = [replace(f, severity="watch") for f in found]
    return found[:3] or Clear("no metric fell back to where it began")


def _metric(series: Series) -> Finding | None:
    fall = fall_from_best(badness(series.values, series.better))
    if fall is None or fall.gain <= 5 * fall.sigma or fall.share < LOST or fall.p > 1e-3:
        return None
    if series.unit in ("%", "fraction") and fall.gain < POINT * (100.0 if series.unit == "%" else 1.0):
        return None
    if series.unit in ("%", "fraction"):
        # What is right at the best: of an error rate, what it leaves of the whole.
        right = abs(fall.best) if series.better == "up" else (100.0 if series.unit == "%" else 1.0) - fall.best
        if fall.drop < OF_BEST * right:
            return None  # it began well, at its first evaluation: a decline, and no collapse
    sign = -1.0 if series.better == "up" else 1.0
    text = (
        f"{series.name} had reached {sign * fall.best:.4g} and fell back to {sign * fall.last + 0.0:.4g} "
        f"(it began at {sign * fall.first:.4g}) at {where(series, fall.onset_index)}"
    )
    return seen(
        ID, series, text, severity="ill", grade="is-p", onset=fall.onset_index, p=fall.p,
        best=sign * fall.best, last=sign * fall.last, share=fall.share,
    )  # fmt: skip


def _return(series: Series) -> Finding | None:
    """Tenths of the run: the best tenth against the last, with the spread of single episodes as noise."""
    values = series.values[series.finite]
    if len(values) < 30:
        return None
    bad = badness(values, series.better)
    _, tenths = block_medians(bad, 10)
    best = int(np.argmin(tenths[:-1]))
    gain, drop = float(tenths[0] - tenths[best]), float(tenths[-1] - tenths[best])
    sigma = robust_sigma(bad - np.repeat(tenths, np.diff(np.linspace(0, len(bad), 11).astype(int)))) / np.sqrt(
        len(bad) / 10
    )
    p = p_of_drop(drop / max(sigma, 1e-12), 10, 0.5, 1)
    episode = sigma * np.sqrt(len(bad) / 10)
    size = max(abs(float(tenths[0])), abs(float(tenths[best])))
    if drop < LOST_RETURN * gain or gain <= max(5 * sigma, episode, 0.2 * size) or p > 1e-3:
        return None
    # Single episodes may differ a hundredfold: those of the end must be worse one by one, too, and not in their median alone.
    parts = np.array_split(bad, 10)
    rows = len(parts[-1])
    if _worse(parts[best], parts[-1]) < min(0.95, 0.5 + 3 * np.sqrt((2 * rows + 1) / (12 * rows * rows))):
        return None
    cut = tenths[best] + drop / 2
    smooth = block_medians(bad, 50)[1]
    after = np.flatnonzero(smooth <= cut)
    onset = min(int((after[-1] + 1) / len(smooth) * len(series)), len(series) - 1) if len(after) else 0
    sign = -1.0 if series.better == "up" else 1.0
    text = (
        f"{series.name}: the best tenth of the run had {sign * tenths[best]:.4g}, the last {sign * tenths[-1]:.4g} "
        f"(the first {sign * tenths[0]:.4g}); lost since {where(series, onset)}"
    )
    return seen(
        ID,
        series,
        text,
        severity="ill",
        grade="is-p",
        onset=onset,
        p=p,
        best=sign * tenths[best],
        last=sign * tenths[-1],
    )


def _below_start(series: Series, shifting: str) -> Finding | None:
    """Returns of two kinds (success and failure) have no level to fall from: their order tells. The chance that an episode of
    the end is worse than one of the start, by ranks, in the last tenth and in the one before it."""
    values = series.values[series.finite]
    if len(values) < ROWS:
        return None
    bad = badness(values, series.better)
    tenths = np.array_split(bad, 10)
    medians = [float(np.median(t)) for t in tenths]
    best = int(np.argmin(medians[:-1]))
    worse = min(_worse(tenths[0], tenths[-1]), _worse(tenths[0], tenths[-2]))
    rho = noise_of(bad).rho
    rows = len(tenths[0]) * (1 - rho) / (1 + rho)  # so many that are independent
    error = np.sqrt((2 * rows + 1) / (12 * rows * rows))  # of the share of pairs, if both are alike (Mann and Whitney)
    deep = medians[-1] - medians[0] > float(np.std(tenths[0]))
    if worse < max(WORSE, 0.5 + 4 * error) or not deep or _worse(tenths[best], tenths[-1]) < WORSE:
        return None
    sign = -1.0 if series.better == "up" else 1.0
    lost = next(i for i in range(9, -1, -1) if i == 0 or _worse(tenths[0], tenths[i - 1]) < WORSE)
    onset = sum(len(t) for t in tenths[:lost])
    text = (
        f"{series.name} ends below where it began: the first tenth of the run had {sign * medians[0]:.4g}, the best "
        f"{sign * medians[best]:.4g}, the last {sign * medians[-1]:.4g}; since {where(series, int(np.flatnonzero(series.finite)[onset]))} "
        f"an episode is worse than one of the start with a chance of {_worse(tenths[0], tenths[-1]):.0%}"
    )
    return seen(
        ID, series, text, severity="watch" if shifting else "ill", grade="is-p", onset=int(np.flatnonzero(series.finite)[onset]),
        p=1e-4, best=sign * medians[best], last=sign * medians[-1],
    )  # fmt: skip


def _worse(a: Floats, b: Floats) -> float:
    """The share of pairs in which the one of b is worse; ties count half."""
    order = np.sort(a)
    return float((np.searchsorted(order, b, "left") + np.searchsorted(order, b, "right")).mean() / (2 * len(a)))


_up = [0.01 + 0.02 * i for i in range(20)]
CASES = {
    "finding": {"val/accuracy": [*_up, 0.02, 0.01, 0.012, 0.01, 0.011, 0.01]},
    "clear": {"val/accuracy": _up},
    # Two kinds of episodes: at first one in four fails, in the end three of four, and worse than ever.
    "two modes": {
        "return": [-900.0 if i % 4 == 0 else 200.0 + i % 7 for i in range(400)]
        + [-2000.0 - i % 5 if i % 8 < 7 else 200.0 for i in range(200)],
        "expect": "ill",
    },
    # Episodes of 0 to 299: the median of a few at the end is low by luck.
    "a few bad episodes": {
        "return": [*[float(3 * (i * 7 % 5)) for i in range(120)], 33, 7, 28, 69, 9, 14, 43, 13, 2, 5, 38, 48, 10, 26, 0, 5, 22, 35, 50,
                   27, 53, 4, 51, 42, 16, 299, 0, 3, 6, 6, 2, 4, 40, 0, 0, 75, 8, 1, 6],
        "expect": "clear",
    },
    "two modes, kept": {"return": [-900.0 if i % 4 == 0 else 200.0 + i % 7 for i in range(600)], "expect": "clear"},
    "began well": {"val/accuracy": [0.45, 0.47, 0.485, *[0.494 - 0.002 * i for i in range(20)]], "expect": "clear"},
    "an error rate that began well": {
        "val/wer": [0.24, 0.2042, 0.2009, 0.2007, *[0.2031 + 0.003 * i for i in range(12)]], "expect": "clear",
    },
    "near miss": {"val/accuracy": [*_up, 0.3, 0.31, 0.3, 0.31], "expect": "clear"},
    "unknown": {"train/loss": [2.0, 1.5, 1.2, 1.0, 0.9]},
}
