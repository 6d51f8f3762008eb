"""The record begins in the middle of a run.

## What it sees
A first epoch (or step) far from the start: what came before is not in this record.

## Why it matters
A resume can change the learning rate, lose the optimizer's state or repeat data, and the jump itself lies
at the seam that is missing here. A curve that looks calm on this side can be the scar of a bad resume.

## How it decides
The first position is at least five epochs, or at least a fifth of the last position with at least 100
steps. It is a note as such. When the config resumes without the optimizer's state, and the validation
score did not rise above its first values by more than noise, a bad resume is suspected and the verdict is
left open: the earlier part decides.

## When it is wrong
An excerpt cut from a longer log by a person.

## References
- PyTorch, torch/optim/optimizer.py (load_state_dict).
- PyTorch, torch/optim/lr_scheduler.py.
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), training loss patterns.
"""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Run, Series

ID = "starts-late"
LIVE = True
DROPS = re.compile(r"no_resume_opt|reset_optim\w*|skip_optim\w*|resume_weights_only|load_weights_only", re.IGNORECASE)


def look(run: Run, train_loss: Series | None = None, main_metric: Series | None = None) -> Answer:
    series = train_loss if train_loss is not None else main_metric
    if series is None or len(series) < 3 or series.clock not in ("epoch", "step"):
        return Unknown("no curve to see the start of", ("train/loss",))
    first, last = float(series.at[0]), float(series.at[-1])
    gap = float(np.median(np.diff(series.at)))
    late = first >= 5 if series.clock == "epoch" else first >= max(100.0, 0.2 * last) and first > 3 * gap
    if not late:
        return Clear(f"the record begins at {where(series, 0)}")
    dropped = [
        leaf
        for tree in run.configs
        for leaf in tree.leaves
        if DROPS.search(leaf.dotted) and leaf.value in (True, "true", 1)
    ]
    text = f"the record begins at {where(series, 0)}: the earlier part of the run is not here"
    if dropped:
        text += f"; it was resumed without the optimizer's state ({dropped[0].dotted}, {dropped[0].file.rsplit('/', 1)[-1]}:{dropped[0].line})"
    return seen(
        ID, series, text, severity="ill" if dropped else "note", grade="suspected" if dropped else "is", onset=0,
        first=first, dropped=float(bool(dropped)),
    )  # fmt: skip


CASES = {
    "finding": {"train/loss": [2.7, 2.9, 2.8, 2.9], "start": 47, "clock": "epoch"},
    "clear": {"train/loss": [2.7, 2.6, 2.5, 2.4]},
    "unknown": {},
}
