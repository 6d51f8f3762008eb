"""The logged loss looks fine, but other traces say that it was not finite.

## What it sees
A finite training loss on rows where the gradient norm is not finite, or where the log counts NaN iterations,
in a trainer that is known to replace non-finite losses in its log.

## Why it matters
The Hugging Face Trainer replaces a NaN loss by the recent mean before it logs it, by default. The curve goes
on as if nothing had happened, while the weights may be NaN.

## How it decides
Exact, from the rows. Single rows with an infinite norm are what a skipped fp16 update looks like, so
at least three rows in a row, to the end of the record or over a tenth of it, are asked for. A watch; it is
ill only when it lasts from some row to the end, for ten rows, and the filter is on: then no later loss is a
measurement.

## When it is wrong
A gradient norm that overflows by itself (summed in half precision) while the loss really is finite: where the
loss still improves after the onset, it is only a watch.

## References
- Transformers, src/transformers/training_args.py, logging_nan_inf_filter (huggingface/transformers);
  huggingface/trl issue 6702.
- NVlabs/edm, training/training_loop.py (nan_to_num on the gradients).
- wandb/wandb issue 2202; lanpa/tensorboardX issue 668 (NaN drawn as nothing, or as 0).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.reading.record import Floats
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.statistics import slope_p

ID = "hidden-nan"
LIVE = True
ROWS, LONG = 3, 10


def look(run: Run, train_loss: Series, knobs: Knobs | None = None) -> Answer:
    traces = [s for s in run.series.values() if s.quantity in ("grad_norm", "nan_count") and len(s) >= 2]
    if not traces:
        return Unknown("no gradient norm and no count of NaN is logged", ("grad_norm",))
    filtered = _filter_on(run, knobs)
    for trace in traces:
        bad = ~trace.finite if trace.quantity == "grad_norm" else trace.values > 0
        if bad.all():
            continue  # never measured: a placeholder
        stretch = _last_stretch(bad)
        if stretch is None:
            continue
        start, stop = stretch
        rows = stop - start
        open_end = stop == len(bad)
        if rows < ROWS or not (open_end or rows >= 0.1 * len(bad)):
            continue
        loss = _loss_in(train_loss, trace, start, stop)
        if loss is None or not np.isfinite(loss).all() or len(loss) < ROWS:
            continue
        improves = len(loss) >= 8 and slope_p(np.arange(len(loss), dtype=np.float64), loss)[0] < 0
        sure = filtered and open_end and rows >= LONG and not improves
        text = (
            f"{trace.name} is {'not finite' if trace.quantity == 'grad_norm' else 'above zero'} on {rows} rows in a row from "
            f"{where(trace, start)}, while {train_loss.name} is logged as {loss[-1]:.4g}"
        )
        if filtered:
            text += "; this trainer replaces non-finite losses in its log"
        return seen(
            ID, trace, text, severity="ill" if sure else "watch", grade="is" if sure else "suspected", onset=start,
            end=None if open_end else stop, rows=rows,
        )  # fmt: skip
    return Clear("no trace of a loss that was not finite")


def _filter_on(run: Run, knobs: Knobs | None) -> bool:
    """The Hugging Face Trainer filters unless it is told not to."""
    if not ((knobs is not None and knobs.dialect.NAME == "hf") or any("hf" in f.lower() for f in run.formats)):
        return False
    leaves = (tree.leaf("logging_nan_inf_filter") for tree in run.configs)
    return not any(leaf is not None and leaf.value is False for leaf in leaves)


def _last_stretch(bad: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[int, int] | None:
    """The longest unbroken stretch, the last of equals."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], bad, [False]]).astype(np.int8)))
    if not len(edges):
        return None
    starts, stops = edges[::2], edges[1::2]
    best = len(starts) - 1 - int(np.argmax((stops - starts)[::-1]))
    return int(starts[best]), int(stops[best])


def _loss_in(loss: Series, trace: Series, start: int, stop: int) -> Floats | None:
    at = loss.on(trace.clock)
    if at is None:
        return None
    inside = (at >= trace.at[start]) & (at <= trace.at[stop - 1])
    return np.asarray(loss.values[inside])


_HF = "max_steps: 200\nlearning_rate: 0.001\nper_device_train_batch_size: 8\nlogging_steps: 1\nlr_scheduler_type: linear\n"
_nan = float("nan")
CASES = {
    "finding": {
        "train/loss": [2.0 - 0.01 * i for i in range(40)] + [1.6] * 20,
        "grad_norm": [1.0] * 40 + [_nan] * 20,
        "config": _HF,
    },
    "clear": {"train/loss": [2.0 - 0.01 * i for i in range(40)], "grad_norm": [1.0] * 40},
    "near miss": {
        "train/loss": [2.0 - 0.01 * i for i in range(40)],
        "grad_norm": [1.0] * 20 + [float("inf")] + [1.0] * 19,
        "expect": "clear",
    },
    "unknown": {"train/loss": [1.0, 0.9]},
}
