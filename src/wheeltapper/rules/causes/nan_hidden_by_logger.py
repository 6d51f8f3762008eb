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

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "nan-hidden-by-logger"
AREA = "logging"
ABOUT = "crash"
EXPLAINS = ("loss-exactly-zero", "hidden-nan", "not-finite", "at-chance", "constant-metric", "never-left-zero")
SHOWS = {"hidden-nan": "seen", "loss-exactly-zero": "seen"}
TRIAL = "load the last checkpoint and count the weights that are not finite"


def remedies(case: Case) -> tuple[Remedy, ...]:
    edit = Edit("logging.nan_filter", case.knob("logging.nan_filter"), False, "shows the first NaN")
    return (
        Remedy("Switch the filter off and find the first NaN.", (edit,), "safe", "the log shows NaN from the onset on"),
    )
