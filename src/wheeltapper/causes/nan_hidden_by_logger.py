"""The logger replaces losses that are not finite, and the run has been NaN for long.

## What happens
The Hugging Face Trainer filters NaN and infinite losses out of its log by default (logging_nan_inf_filter): they are
replaced by the recent mean, which is 0 in a window that holds nothing else. The weights may be NaN all the while.

## How it shows
The training loss is logged as exactly 0 from some row on; the gradient norm is NaN; the evaluation loss is NaN while the
training loss looks fine.

## What else looks like this
A loss that really is zero (all labels masked: the norm is 0, not NaN), memorised data (small, never exactly zero).

## When this is wrong
The filter is off, or the gradient norm is finite on the same rows.

## Fix
logging_nan_inf_filter=False; then look for the first NaN.

## Trial
Load the last checkpoint and count the weights that are not finite: minutes.

## References
- Transformers, src/transformers/training_args.py, logging_nan_inf_filter (huggingface/transformers);
  huggingface/trl issue 6702.
- NVlabs/edm, training/training_loop.py (nan_to_num on the gradients).
- wandb/wandb issue 2202; lanpa/tensorboardX issue 668 (NaN drawn as nothing, or as 0).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series

ID = "nan-hidden-by-logger"
AREA = "logging"
EXPLAINS = ("loss-exactly-zero", "hidden-nan", "not-finite", "at-chance", "constant-metric", "never-left-zero")
PRIOR = -2.5
TRIAL = "load the last checkpoint and count the weights that are not finite"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    hugging = (case.knobs is not None and case.knobs.dialect.NAME == "hf") or any(
        f.lower().startswith("hf") for f in case.run.formats
    )
    hugging = hugging or {"loss", "grad_norm", "learning_rate"} <= {s.raw for s in case.run.series.values()}  # its rows, printed
    filtered = case.knob("logging.nan_filter")
    if filtered is False:
        return Excluded("the filter of the logger is off")
    if not hugging and not filtered:
        return Excluded("this logger is not known to replace values that are not finite")
    train: Series | None = case.get("train_loss")
    if train is None or not train.finite.all():
        return Excluded("the training loss is not logged, or shows its NaN")
    out = []
    norms = [s for s in case.run.series.values() if s.quantity == "grad_norm" and len(s) >= 3]
    lost = [s for s in norms if np.isnan(s.values[-3:]).all() and s.finite.any()]
    if lost:
        first = int(np.flatnonzero(lost[0].finite)[-1]) + 1
        text = f"the gradient norm is NaN from {lost[0].clock} {lost[0].at[first]:g} to the end, while the logged loss is finite"
        out.append(Evidence(7.0, text, "proof", (lost[0].place(first),)))
    elif norms and np.isnan(norms[0].values).all() and not np.any(train.values):
        text = f"the gradient norm is NaN on all {len(norms[0])} rows, and the loss is logged as exactly 0"
        out.append(Evidence(7.0, text, "proof", (norms[0].place(0),)))
    elif norms and norms[0].finite[-3:].all():
        return Excluded("the gradient norm is finite to the end")
    scored: Series | None = case.get("val_loss")
    if scored is not None and not scored.finite[-1] and scored.finite.any():
        out.append(Evidence(4.0, f"{scored.name} is not finite at the end, while the training loss is", "eval"))
    zero = [f for f in case.found("loss-exactly-zero", severity="ill") if f.series == train.name]
    if zero:
        out.append(Evidence(3.5, f"{zero[0].summary}, as a filtered NaN is logged", "zero", zero[0].places))
    return out or Excluded("no trace of a hidden NaN")


def remedies(case: Case) -> tuple[Remedy, ...]:
    edit = Edit("logging.nan_filter", case.knob("logging.nan_filter"), False, "shows the first NaN")
    return (
        Remedy("Switch the filter off and find the first NaN.", (edit,), "safe", "the log shows NaN from the onset on"),
    )
