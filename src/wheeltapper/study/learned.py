"""Was anything learned that the record can show? Without it, silence of the signs is not soundness."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wheeltapper.run.model import Series
from wheeltapper.study import derived
from wheeltapper.study.curves import SUPPORTING, Task
from wheeltapper.study.statistics import badness, fall_from_best, noise_of

FEWEST = 4  # values: fewer make no curve
ROWS = 20  # of a training loss that tells whether it fell
TERMS = 50  # values of a term beside an opponent, which moves its level
A_PART = 0.1  # of the sum: a small term that falls says nothing of the others
MATERIAL = 0.02  # of its level: what stuck-from-start calls not moving; healthy records gain 3.8 % at least (LOG.md)


@dataclass(frozen=True, slots=True)
class Learned:
    seen: bool
    why: str
    series: str | None = None


@derived
def learned(
    task: Task,
    train_loss: Series | None = None,
    val_loss: Series | None = None,
    val_metrics: tuple[Series, ...] = (),
    loss_parts: tuple[Series, ...] = (),
) -> Learned:
    """The first series, of those that matter most, that improved by more than its noise. In adversarial training the terms
    without an opponent (a cycle, a distance in pixels) must fall as any loss."""
    tried = []
    alone = [s for s in loss_parts if not {"gan", "adv", "d", "g"} & set((s.part or "").split("_")[:1])]
    alone = [s for s in alone if len(s) >= TERMS] if task.adversarial else []
    whole = sum(_level(s) for s in loss_parts)
    alone = [s for s in alone if _level(s) >= A_PART * whole]
    main = next((s for s in val_metrics if s.better == "up" and s.unit in ("%", "fraction") and not s.part), None)
    if main is not None and int(main.finite.sum()) >= FEWEST and not np.any(main.values[main.finite] != 0):
        return Learned(False, f"{main.name} is 0 in all of its {int(main.finite.sum())} evaluations")
    stands = train_loss is not None and int(train_loss.finite.sum()) >= ROWS and not _fell(train_loss)
    for series in [*val_metrics[:4], val_loss, train_loss, *alone[:4]]:
        if series is None:
            continue
        x = badness(series.values[series.finite], series.better)
        if len(x) < FEWEST:
            tried.append(f"{series.name} has {len(x)} values")
            continue
        k = max(1, len(x) // 10)
        sign = -1.0 if series.better == "up" else 1.0
        early = k if series.quantity != "return" else min(k, max(3, len(x) // 100))  # an agent may learn within the first tenth
        start, end = float(np.median(x[:early])), float(np.median(x[-k:]))
        if stands and series is not train_loss:
            # One bad first evaluation, of weights that were thrown about, is no start to have learned from.
            start = min(start, float(np.min(x[: max(2, early)])))
        spread = max(noise_of(x).sigma / np.sqrt(early), 1e-9 * abs(start))
        size = max(abs(start), abs(end))
        least = 10 * math.log10(1 + MATERIAL) if series.unit == "dB" else MATERIAL * size  # decibels: of the squared error
        material = series.unit in ("%", "fraction") or start - end > least
        if start - end > 3 * spread and material:
            return Learned(True, f"{series.name} improved from {sign * start + 0.0:.4g} to {sign * end + 0.0:.4g}", series.name)
        held = max(abs(start), 1e-300)
        if (
            series.better == "up"
            and series.unit in ("%", "fraction")
            and series.quantity not in SUPPORTING
            and abs(start - end) / held < 0.05
            and abs(end) > 0.5 * (100 if series.unit == "%" else 1)
        ):
            return Learned(True, f"{series.name} holds its level of {sign * end:.4g}", series.name)
        tried.append(f"{series.name} did not clearly improve ({sign * start + 0.0:.4g} to {sign * end + 0.0:.4g})")
    if not tried and task.adversarial:
        return Learned(False, "only losses of two opponents are logged, which show a balance and no progress")
    return Learned(False, "; ".join(tried) or "no loss and no metric is logged")


def _fell(series: Series) -> bool:
    x = series.values[series.finite]
    k = max(3, len(x) // 10)
    start = min(float(np.min(x[:3])), float(np.median(x[:k])))  # it may blow up within the first tenth
    return start - float(np.median(x[-k:])) > MATERIAL * abs(start)


def _level(series: Series) -> float:
    x = np.abs(series.values[series.finite])
    return float(np.median(x[: max(3, len(x) // 10)])) if len(x) else 0.0


def improves_late(series: Series) -> bool:
    """The last quarter of a score is better than the quarter before it by more than its noise."""
    x = badness(series.values[series.finite], series.better)
    if len(x) < 8:
        return False
    quarter = len(x) // 4
    before, last = x[-2 * quarter : -quarter], x[-quarter:]
    spread = noise_of(x).sigma * np.sqrt(2.0 / quarter)
    return bool(np.median(before) - np.median(last) > 2 * spread)


def ends_at_best(series: Series) -> bool:
    """A score that has clearly improved and ends within a twentieth of its gain from its best."""
    fall = fall_from_best(badness(series.values, series.better))
    return fall is not None and len(series) >= 8 and fall.gain > 3 * fall.sigma and fall.share < 0.05
