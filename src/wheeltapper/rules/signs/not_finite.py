"""A logged value is NaN or infinite.

## What it sees
NaN, +inf or -inf in a loss, a metric or a gradient norm, where it first appears, and whether finite
values come back.

## Why it matters
A loss that is NaN to the end means the weights are NaN: nothing after the onset was training.

## How it decides
Exact. Non-finite from some point to the end is ill, and so is a loss that is on most of its rows, the last among
them; one last evaluation beside a finite training loss is not yet. Non-finite that clears again, with the curve back at
its level, is a watch: one poisoned batch in a running average, or a step that the loss scaler skipped. A
validation loss that is NaN while a validation score is as good as before is a watch too: the loss is at
fault, not the model. Non-finite on a fixed share of rows from the first row on is a placeholder for "not
measured here".

## When it is wrong
A logger that prints NaN for "no value" only late in the run. Gradient norms are never ill by themselves:
an infinite norm is what a skipped fp16 step looks like.

## References
- PyTorch, torch/nn/utils/clip_grad.py.
- Transformers, src/transformers/training_args.py, logging_nan_inf_filter (huggingface/transformers);
  huggingface/trl issue 6702.
- wandb/wandb issue 2202; lanpa/tensorboardX issue 668 (NaN drawn as nothing, or as 0).
- NVlabs/edm, training/training_loop.py (nan_to_num on the gradients).
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Place
from wheeltapper.observations.not_finite_share import ERRORS, not_finite
from wheeltapper.rules.signs import last_words, seen, where
from wheeltapper.run.model import Run, Series

ID = "not-finite"
LIVE = True
DECIDES = True
STOPPED = re.compile(
    r"\b(nan|inf|infinity|non-?finite)\b[^\n]{0,30}\bloss|\bloss\b[^\n]{0,30}\b(nan|inf|non-?finite)\b", re.IGNORECASE
)


def look(
    run: Run, judged: tuple[Series, ...], train_loss: Series | None = None, val_metrics: tuple[Series, ...] = ()
) -> Answer | list[Finding]:
    found = [finding for series in judged if (finding := _one(series)) is not None]
    found = [_softened(f, judged, val_metrics) for f in found]
    # One evaluation, the last, is not a run that is lost while the training loss is finite.
    sound = train_loss is not None and len(train_loss) > 2 and bool(train_loss.finite[-1])
    found = [
        replace(f, severity="watch")
        if sound and f.numbers.get("rows") == 1 and (f.series or "").startswith(("val/", "test/"))
        else f
        for f in found
    ]
    told = None if any(f.severity == "ill" for f in found) else _told(run, train_loss)
    found += [told] if told is not None else []
    if not found:
        return Clear("every logged value is finite")
    whole = [f for f in found if f.severity == "ill"]
    # One NaN spreads to every series of the row: the first to fall is the finding, the rest are its echo.
    first = sorted(whole or found, key=lambda f: (f.series is not None and "." in f.series, f.onset or 0))
    return first[:6]


def _told(run: Run, train_loss: Series | None) -> Finding | None:
    """A program that stops at the first NaN logs none: its last words say it."""
    last = next((e for e in reversed(run.events) if e.kind == "crash" and STOPPED.search(e.text)), None)
    if last is None or train_loss is None or not len(train_loss):
        return None
    end = len(train_loss) - 1
    text = f"the program stopped itself after {where(train_loss, end)}: {last_words(last.text)}"
    return seen(ID, train_loss, text, severity="ill", grade="is", onset=end, extra=(Place(last.file, last.line),))


def _softened(finding: Finding, judged: tuple[Series, ...], scores: tuple[Series, ...]) -> Finding:
    """A validation loss that is NaN while a validation score is as good as before is a fault of that loss."""
    series = next((s for s in judged if s.name == finding.series), None)
    if finding.severity != "ill" or series is None or series.split == "train":
        return finding
    for score in scores:
        at = score.on(series.clock)
        if score.quantity == "loss" or at is None or finding.onset is None or score.better != "up":
            continue
        before, after = (
            score.values[(at < finding.onset) & score.finite],
            score.values[(at >= finding.onset) & score.finite],
        )
        best = float(before.max()) if len(before) else 0.0
        if len(after) >= 3 and float(np.median(after[-3:])) >= max(0.8 * best, 1e-9):
            return replace(finding, severity="watch", summary=f"{finding.summary}; {score.name} is not hurt by it")
    return finding


def _one(series: Series) -> Finding | None:
    bad = not_finite(series)
    n = len(series)
    if not bad.any() or n < 2:
        return None
    spots = np.flatnonzero(bad)
    first = int(spots[0])
    share = float(bad[first:].mean())
    # The same metric printed with and without a value on alternate rows, from the start: not measured there.
    if first < max(2, 0.02 * n) and 0.02 < float(bad.mean()) < 0.98 and series.quantity != "loss":
        return None
    if bad.all():
        what = f"{series.name} is never finite ({n} values)"
        return seen(ID, series, what, severity="ill" if series.quantity in ERRORS else "watch", grade="is", onset=0)
    tail = bad[-max(1, min(5, n - first)) :]
    gone = bool(tail.all())
    if series.quantity in ("grad_norm", "loss_scale"):
        text = f"{series.name} is not finite on {int(bad.sum())} of {n} rows, first at {where(series, first)}"
        return seen(ID, series, text, severity="watch", grade="is", onset=first, rows=bad.sum())
    if not gone and bad[-1] and n >= 3 and float(bad.mean()) > 0.5 and series.quantity == "loss" and not series.part:
        text = f"{series.name} is not finite on {int(bad.sum())} of {n} rows, the last among them, first at {where(series, first)}"
        return seen(ID, series, text, severity="ill", grade="is", onset=first, rows=bad.sum())
    if gone:
        start = int(np.flatnonzero(~bad)[-1]) + 1  # the first of the last unbroken stretch
        start = first if share > 0.9 else start
        before = series.values[start - 1] if start else float("nan")
        text = (
            f"{series.name} is not finite from {where(series, start)} to the end ({n - start} row{'s' if n - start > 1 else ''}); "
            f"the value before was {before:.4g}"
        )
        return seen(ID, series, text, severity="ill", grade="is", onset=start, rows=n - start, before=before)
    back = int(spots[-1]) + 1
    text = f"{series.name} is not finite on {int(bad.sum())} of {n} rows, first at {where(series, first)}; "
    # The record may end on such a row, as a live one often does: too few in a row to say that it is lost.
    text += f"finite again from {where(series, back)}" if back < n else "the last row is one of them"
    end = back if back < n else None
    return seen(ID, series, text, severity="watch", grade="is", onset=first, end=end, rows=bad.sum())


CASES = {
    "finding": {"train/loss": [2.0, 1.5, 1.2, 1.1, float("nan"), float("nan"), float("nan")]},
    "clear": {"train/loss": [2.0, 1.5, 1.2, 1.1, 1.0]},
    "near miss": {"train/loss": [2.0, 1.5, float("nan"), 1.1, 1.0, 0.9, 0.8, 0.7], "expect": "watch"},
    "last row": {"train/loss": [2.0, 1.5, float("nan"), 1.1, 1.0, 0.9, float("nan")], "expect": "watch"},
    "unknown": {},
}
