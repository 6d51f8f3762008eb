"""The record stops before the planned end.

## What it sees
A last position short of the planned number of steps or epochs, without a crash in the log.

## Why it matters
A curve is judged against the schedule it was made for: a cosine that was cut off in the middle has not been
annealed. A run that was stopped has not failed.

## How it decides
Exact, from the planned length in the settings or the log. It counts from 2 % of the plan on, so that a last
log interval is no news. Always a note. Early stopping in the settings is named.

## When it is wrong
A log that was copied while the run went on; a planned length that the run was not started with.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- Tissue et al. 2024, Scaling Law with Learning Rate Annealing (arXiv:2408.11029).
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), debugging and performance.
"""

from __future__ import annotations

from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.progress import Progress

ID = "stopped-early"
LIVE = False
SHORT = 0.02


def look(progress: Progress, knobs: Knobs | None = None) -> Answer:
    if progress.share is None or progress.total is None or progress.at is None:
        return Unknown("the planned length of the run is not known", ("the planned length",))
    if progress.state != "stopped" or progress.share > 1 - SHORT:
        return Clear(progress.text)
    text = f"the record stops at {progress.clock} {round(progress.at, 2):,.10g} of {progress.total:,.10g} ({progress.share:.0%}), "
    text += "without a crash in it" if progress.crash is None else "where it was stopped by hand"
    patience = knobs.value("run.early_stop") if knobs is not None else None
    if patience:
        text += f"; early stopping is on (patience {patience:g})" if isinstance(patience, (int, float)) else ""
    return Finding(
        id=ID, summary=text, severity="note", grade="is", clock=progress.clock, numbers={"share": progress.share}
    )


CASES = {
    "finding": {"train/loss": [1.0, 0.9, 0.8, 0.7], "facts": {"total_steps": 100}},
    "clear": {"train/loss": [1.0] * 100, "facts": {"total_steps": 100}},
    "crashed": {
        "train/loss": [1.0, 0.9, 0.8, 0.7],
        "facts": {"total_steps": 100},
        "events": [("crash", "Killed", 5)],
        "expect": "clear",
    },
    "by hand": {
        "train/loss": [1.0, 0.9, 0.8, 0.7],
        "facts": {"total_steps": 100},
        "events": [("crash", "KeyboardInterrupt", 5)],
        "expect": "note",
    },
    "unknown": {"train/loss": [1.0, 0.9]},
}
