"""The training loss jumped far out of its band, and came back or did not.

## What it sees
Values of the training loss far above the level around them: a spike that recovers, or a jump to a higher
level that lasts to the end of the record.

## Why it matters
A spike that recovers is usually harmless; a jump that stays is not. People change a recipe because of the
first and overlook the second.

## How it decides
The logarithm of the loss against a running median, in units of the run's own spread; the threshold is the
larger of the normal one for the number of looks and one and a half times the largest excursion of the
first half's 99th percentile, because tails are heavy. Stays: the median after the jump lies above the
level before by more than half the jump, to the end. A jump that stays needs a factor of 1.2 at least.

## When it is wrong
A loss that is a single batch of a noisy objective (diffusion) spikes by nature. A new stage of a curriculum.

## References
- BigScience 176B chronicles (bigscience-workshop/bigscience, train/tr11-176B-ml).
- BigScience 104B chronicles (bigscience-workshop/bigscience, train/tr8-104B-wide).
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), training loss patterns.
- The threshold for N looks is the normal quantile at 1 - a/N; heavy tails need more, so it is also
  measured on the run's own quiet part.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Severity, Unknown
from wheeltapper.reading.record import Floats, Ints
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.curves import Task
from wheeltapper.study.learned import ends_at_best
from wheeltapper.study.statistics import robust_sigma, running_median, spike_threshold

ID = "spiked"
LIVE = False
STAYS, AFTER = 1.2, 3
RUIN, TENFOLD = 100.0, 10.0  # healthy runs spike by factors of a few (LOG.md); a hundredfold is another order of thing


def look(
    train_loss: Series,
    task: Task,
    shifting: str = "",
    val_loss: Series | None = None,
    val_metrics: tuple[Series, ...] = (),
) -> Answer | list[Finding]:
    good = np.flatnonzero(train_loss.finite & (train_loss.values > 0))
    if int((train_loss.values[train_loss.finite] < 0).sum()) > 0.05 * int(train_loss.finite.sum()):
        return Unknown("a loss that crosses zero has no factors to jump by", ("a loss above zero",))
    if len(good) < 6:
        return Unknown("fewer than six positive training losses", ("a loss logged more often",))
    x = np.log(train_loss.values[good])
    n = len(x)
    width = int(np.clip(n // 10, 5, 101))
    before = _median_before(x, width)
    excess = x - before
    half = max(5, n // 2)
    sigma = max(robust_sigma(np.diff(x)) / np.sqrt(2), 1e-9)
    heavy = 1.5 * float(np.quantile(np.abs(excess[1:half]), 0.99)) if n >= 40 else 0.0
    limit = max(spike_threshold(n) * sigma, heavy, np.log(1.15))
    at_best = [s for s in (*val_metrics, val_loss) if s is not None and ends_at_best(s)]
    best = [s.name for s in at_best]
    ruined = _ruined(train_loss, good, x, width)
    # A score whose first evaluation is of the blown-up weights is better than that whatever is left of them.
    spared = ruined is not None and any(_looked_before(s, train_loss, ruined.onset) for s in at_best)
    if ruined is not None and not (spared or shifting or task.reinforcement or task.adversarial):
        return ruined
    spots = np.flatnonzero(excess > limit)
    spots = spots[spots > 0]
    if not len(spots):
        return Clear("no training loss jumped out of its band")
    first = int(spots[np.argmax(excess[spots])])  # the largest
    level = float(before[first])
    after = x[first:]
    end_level = float(np.median(after[-max(1, min(len(after), width)) :])) if len(after) > 1 else float(after[-1])
    size = float(np.exp(excess[first]))
    enough = len(after) >= AFTER  # two high rows in a row are noise that a mean over few batches has
    stays = enough and end_level - level > 0.5 * float(excess[first]) and np.exp(end_level - level) > STAYS
    index = int(good[_first_of(first, excess, limit)] if stays else good[first])
    if stays:
        text = (
            f"{train_loss.name} jumped from {np.exp(level):.4g} to {np.exp(x[first]):.4g} at {where(train_loss, index)} "
            f"and did not come back (ends at {np.exp(end_level):.4g})"
        )
        if best:  # what it does on held-out data is as good as ever: the training loss means something else since then
            text += f"; {best[0]} ends at its best all the same"
        ill = not (shifting or task.diffusion or best)
        return seen(
            ID, train_loss, text, severity="ill" if ill else "watch", grade="is-p" if ill else "suspected", onset=index,
            p=0.1 / max(n, 10), factor=size, stays=1.0,
        )  # fmt: skip
    back = np.flatnonzero(after[1:] <= level + 0.25 * excess[first])
    end = int(good[min(first + 1 + int(back[0]), n - 1)]) if len(back) else None
    text = (
        f"{train_loss.name} spiked {size:.3g}x at {where(train_loss, index)} "
        + (f"and recovered by {where(train_loss, end)}" if end is not None else "and the record ends there")
        + (f"; {len(spots)} such values in all" if len(spots) > 1 else "")
    )
    mild = end is not None or size < TENFOLD
    severity: Severity = "note" if mild else "watch"
    return [seen(ID, train_loss, text, severity=severity, grade="is-p", onset=index, end=end, factor=size, stays=0.0)]


def _looked_before(score: Series, train_loss: Series, onset: float | None) -> bool:
    at = score.on(train_loss.clock)
    return at is None or onset is None or bool(np.nanmin(at[score.finite]) < onset)


def _ruined(train_loss: Series, good: Ints, x: Floats, width: int) -> Finding | None:
    """Blown up a hundredfold, and what came back is no better than what it began with: nothing learned is left."""
    start, end = min(float(x[0]), float(np.median(x[: max(1, len(x) // 50)]))), float(np.median(x[-width:]))
    peak = int(np.argmax(x[: len(x) - width]))
    if len(x) <= 2 * width or x[peak] - start < np.log(RUIN) or not -np.log(1.05) < end - start < np.log(1.5):
        return None
    index = int(good[int(np.argmax(x - start > np.log(RUIN)))])
    text = (
        f"{train_loss.name} blew up to {np.exp(x[peak]):.4g}, from {where(train_loss, index)} on, and came back to where it "
        f"began ({np.exp(start):.4g}, ends at {np.exp(end):.4g}): nothing is left of what was learned"
    )
    return seen(
        ID, train_loss, text, severity="ill", grade="is-p", onset=index, p=0.1 / len(x),
        factor=float(np.exp(x[peak] - start)), stays=0.0,
    )  # fmt: skip


def _median_before(
    x: np.ndarray[tuple[int], np.dtype[np.float64]], width: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Level just before each point: the median of the `width` points that precede it; no hindsight."""
    centred = running_median(x, 2 * (width // 2) + 1)
    out = np.empty_like(x)
    for i in range(len(x)):
        if i < width:
            out[i] = np.median(x[: max(i, 1)])
        else:
            out[i] = centred[i - 1 - width // 2]
    return out


def _first_of(
    peak: int,
    excess: np.ndarray[tuple[int], np.dtype[np.float64]],
    limit: float,
) -> int:
    """The first point of the unbroken rise that leads to the peak."""
    i = peak
    while i > 0 and excess[i - 1] > 0.25 * limit and i - 1 > 0:
        i -= 1
    return i if excess[i] > limit or i == peak else min(i + 1, peak)


_base = [1.0 - 0.005 * i + 0.01 * ((i * 7) % 5) for i in range(60)]
CASES = {
    "finding": {"train/loss": [*_base, *[2.5 + 0.01 * ((i * 3) % 4) for i in range(20)]]},
    "clear": {"train/loss": _base},
    "near miss": {"train/loss": [*_base[:40], 3.0, *_base[40:]], "expect": "note"},
    "blown up, and back where it began": {
        "train/loss": [1.04, 19.0, 1.9e5, 4.9e8, 2.5e4, 1.9, *[1.0 + 0.01 * ((i * 7) % 5) for i in range(60)]],
        "expect": "ill",
    },
    "first evaluated when blown up": {
        "train/loss": [1.04, 19.0, 1.9e5, 4.9e8, 2.5e4, 1.9, *[1.0 + 0.01 * ((i * 7) % 5) for i in range(60)]],
        "val/psnr": [*[math.nan] * 4, -41.0, 12.0, *[21.4] * 60],
        "expect": "ill",
    },
    "held-out score at its best": {
        "train/loss": [*_base, *[2.5 + 0.01 * ((i * 3) % 4) for i in range(20)]],
        "val/accuracy": [0.9 - 0.8 * 0.95**i for i in range(80)],
        "expect": "watch",
    },
    "ends in a spike": {"train/loss": [*_base, 900.0], "expect": "watch"},
    "unknown": {"train/loss": [1.0, 0.9]},
}
