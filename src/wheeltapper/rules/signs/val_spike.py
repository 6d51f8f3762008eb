"""One evaluation stands far off, alone between normal ones.

## What it sees
A single evaluation whose score is far worse than those on both sides of it, which agree with each other.

## Why it matters
Nothing that is learned comes and goes within one evaluation. It is the evaluation that failed there (a wrong
mode or weights, a part of the data, statistics of normalisation layers), or one bad update that healed. A
checkpoint of that moment is not worth keeping.

## How it decides
Each evaluation against the mean of its two neighbours, in units of the run's own spread of such residuals.
The threshold is the larger of the normal one for the number of looks over all scores at 1e-3 in all and
twice the largest residual of any other evaluation, because tails are heavy; and it must be a tenth of the
level. The first fifth is left out: early evaluations are wild. A note.

## When it is wrong
Scores on very small sets, returns of single episodes (not looked at).

## References
- The threshold for N looks is the normal quantile at 1 - a/N; heavy tails need more, so it is also
  measured on the run's own quiet part.
- BigScience 176B chronicles (bigscience-workshop/bigscience, train/tr11-176B-ml).
- Batch-norm statistics forget half in 6.6 updates at momentum 0.1, so first evaluations are wild.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import badness, robust_sigma, spike_threshold

ID = "val-spike"
LIVE = False
ROWS, MOST, LEAST, OTHERS, P = 12, 5000, 0.10, 2.0, 1e-3


def look(val_loss: Series | None = None, val_metrics: tuple[Series, ...] = ()) -> Answer | list[Finding]:
    scores = [
        s
        for s in (val_loss, *val_metrics)
        if s is not None and ROWS <= int(s.finite.sum()) <= MOST and s.quantity not in ("return", "success")
    ][:8]
    if not scores:
        return Unknown(f"fewer than {ROWS} evaluations of any score", ("more evaluations",))
    looks = sum(len(s) for s in scores)
    found = [finding for s in scores if (finding := _one(s, looks)) is not None]
    # One failed evaluation shows in every score of its row.
    first = {f.onset: f for f in reversed(found)}
    return list(first.values())[:2] or Clear("no evaluation stands off alone")


def _one(series: Series, looks: int) -> Finding | None:
    good = np.flatnonzero(series.finite)
    x = badness(series.values[good], series.better)
    excess = np.zeros(len(x))
    excess[1:-1] = x[1:-1] - np.maximum(x[:-2], x[2:])
    residual = x[1:-1] - (x[:-2] + x[2:]) / 2
    start = max(1, len(x) // 5)
    peak = start + int(np.argmax(excess[start:]))
    others = np.delete(np.abs(residual), [i for i in (peak - 2, peak - 1, peak) if 0 <= i < len(residual)])
    sigma = robust_sigma(residual)
    if not len(others) or sigma <= 0:
        return None
    limit = max(
        spike_threshold(looks, P) * sigma,
        OTHERS * float(others[max(0, start - 1) :].max()),
        LEAST * abs(float(np.median(x))),
    )
    if excess[peak] <= limit:
        return None
    index = int(good[peak])
    text = (
        f"{series.name} is {series.values[index]:.4g} at {where(series, index)} alone; the evaluations around it are "
        f"{series.values[good[peak - 1]]:.4g} and {series.values[good[peak + 1]]:.4g}"
    )
    return seen(
        ID,
        series,
        text,
        severity="note",
        grade="is-p",
        onset=index,
        end=int(good[peak + 1]),
        p=P,
        size=float(excess[peak] / sigma),
    )


_steady = [0.5 + 0.01 * i + 0.002 * ((i * 7) % 5) for i in range(30)]
CASES = {
    "finding": {"val/accuracy": [*_steady[:20], 0.2, *_steady[21:]]},
    "clear": {"val/accuracy": _steady},
    "near miss": {"val/accuracy": [*_steady[:20], *[0.2] * 10], "expect": "clear"},
    "unknown": {"val/accuracy": [0.1, 0.2]},
}
