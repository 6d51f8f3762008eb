"""A score repeats exactly, to all printed digits.

## What it sees
A validation score or a training loss that is identical on five rows in a row or more, to the end of the record,
though it is printed with enough digits to move.

## Why it matters
Weights that do not change, an evaluation that is cached or loads the same old checkpoint, an average that
is never updated (EMA), a collapsed model that predicts one class.

## How it decides
Exact equality of the last values: five at least and a third of the record. Values that sit at the limit of
their scale (0, 1, 100 %) are saturated, and only noted. Ill when the score also is not a good one: at or
below its start; otherwise a watch. A loss of three digits on fewer than twenty rows may move below them (the running
mean of an epoch near its end): a watch. A score next to its best beside a validation loss that still moves has converged
to its few digits: a watch.

## When it is wrong
Scores with few steps (accuracy on 20 items), values printed with two digits.

## References
- BigScience 104B chronicles (bigscience-workshop/bigscience, train/tr8-104B-wide).
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.curves import worth_acting
from wheeltapper.study.statistics import badness

ID = "constant-metric"
LIVE = True
ROWS = 5
SHARE = 1 / 3
# A score of five digits that repeats for three quarters of a run does not depend on the weights that are trained; one
# of four may have converged, unless the training loss never fell.
FROZEN, FROZEN_ROWS = 0.75, 20
STILL = 0.002  # of a validation loss: a hundredth of a decibel, the last digit that such scores are printed with
FINE = ("loss", "psnr", "ssim", "lpips", "fid", "perplexity")


def look(
    val_loss: Series | None = None, val_metrics: tuple[Series, ...] = (), train_loss: Series | None = None
) -> Answer | list[Finding]:
    scores = [s for s in (train_loss, val_loss, *val_metrics) if s is not None and len(s) >= ROWS]
    if not scores:
        return Unknown("fewer than five values of any score", ("more evaluations",))
    out = [finding for series in scores if (finding := _one(series, train_loss)) is not None]
    out = [_rounded(f, scores, val_loss) for f in out]
    return out[:3] or Clear("no score repeats exactly")


def _one(series: Series, train_loss: Series | None) -> Finding | None:
    x = series.values[series.finite]
    if len(x) < ROWS:
        return None
    moved = np.flatnonzero(x != x[-1])
    start = int(moved[-1]) + 1 if len(moved) else 0
    rows = len(x) - start
    value = float(x[-1])
    digits = max(len(f"{abs(v):.10g}".replace(".", "").lstrip("0")) for v in (value, *x[:200]))
    if rows < max(ROWS, SHARE * len(x)) or value in (0.0, 1.0, 100.0) or digits < 3:
        return None
    index = int(np.flatnonzero(series.finite)[start])
    better = value > x[0] if series.better == "up" else value < x[0]
    text = f"{series.name} is exactly {value:.6g} on the last {rows} rows, since {where(series, index)}"
    ill = not (better and start > 0) and series.quantity in ("accuracy", "loss", "map", "iou", "dice", "f1", "psnr")
    ill = ill and not (series.quantity == "loss" and digits < 4 and rows < FROZEN_ROWS)
    frozen = rows >= FROZEN_ROWS and rows >= FROZEN * len(x) and series.quantity in FINE
    if frozen and (digits >= 5 or (digits >= 4 and _flat(train_loss))):
        ill, text = True, f"{text}, {rows / len(x):.0%} of the record: training no longer changes what is evaluated"
    return seen(ID, series, text, severity="ill" if ill else "watch", grade="is", onset=index, rows=rows, value=value)


def _rounded(finding: Finding, scores: list[Series], val_loss: Series | None) -> Finding:
    """A score that repeats next to its best while the validation loss still moves has converged to its few digits."""
    series = next(s for s in scores if s.name == finding.series)
    if val_loss is None or series is val_loss or series.quantity == "loss" or series.better not in ("up", "down"):
        return finding
    x = badness(series.values[series.finite], series.better)
    late = val_loss.values[val_loss.finite][-int(finding.numbers["rows"]) :]
    near = float(x[-1] - x.min()) < worth_acting(series, float(x.min()))
    moves = len(late) > 1 and float(np.ptp(late)) > STILL * abs(float(np.median(late)))
    return replace(finding, severity="watch") if near and moves and len(x) > finding.numbers["rows"] else finding


def _flat(train_loss: Series | None) -> bool:
    """Whether the training loss ends where it began, within its noise."""
    x = train_loss.values[train_loss.finite] if train_loss is not None else np.zeros(0)
    if len(x) < FROZEN_ROWS:
        return False
    tenth = max(2, len(x) // 10)
    return float(np.median(x[:tenth]) - np.median(x[-tenth:])) < float(np.std(x[:tenth]))


CASES = {
    "beside a validation loss that is never finite": {
        "val/psnr": [20.1, *([21.28] * 29)],
        "val/loss": [math.nan] * 30,
        "expect": "finding",
    },
    "ill although it rose at first": {
        "val/psnr": [20.75, 21.02, 21.37, *[21.38] * 27],
        "train/loss": [1.0 + 0.01 * ((i * 7) % 5 - 2) for i in range(300)],
        "expect": "ill",
    },
    "converged": {
        "val/loss": [1.0, 0.8, 0.7, *[0.651] * 27],
        "train/loss": [0.99**i for i in range(300)],
        "expect": "watch",
    },
    "a mean of three digits": {"train/loss": [0.151] * 7, "expect": "watch"},
    "finding": {"val/accuracy": [0.2409] * 12},
    "clear": {"val/accuracy": [0.24, 0.31, 0.4, 0.45, 0.47, 0.48]},
    "near miss": {"val/accuracy": [0.9, 0.97, 1.0, 1.0, 1.0, 1.0, 1.0], "expect": "clear"},
    "unknown": {"val/accuracy": [0.2]},
}
