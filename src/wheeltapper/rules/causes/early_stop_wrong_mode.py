"""A monitor takes the wrong end of its metric for the better one.

## What happens
Early stopping or the choice of the best checkpoint watches a loss with mode max, or an accuracy with mode min. It stops
as soon as the model improves, or keeps the worst of all checkpoints.

## How it shows
The run stops after its patience while the held-out score was still improving; the kept checkpoint is an early one.

## What else looks like this
A time limit or a crash; patience that is too short for a noisy score.

## When this is wrong
The score had stopped improving when the run stopped.

## Fix
min for losses and errors, max for scores.

## Trial
Score the kept checkpoint and the last one on the same items.

## References
- Prechelt 1998, Early Stopping - But When? (Neural Networks: Tricks of the Trade).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "early-stop-wrong-mode"
AREA = "evaluation"
ABOUT = "evaluation"
EXPLAINS = ("stopped-early", "too-slow", "barely-learned")
SHOWS = {"stopped-early": "seen", "still-falling": "high"}
FORBIDS = {"declined-after-peak": "seen"}
PROVED_BY = ("kept-by-the-wrong-end", "best-of-the-worst")
TRIAL = "score the kept checkpoint and the last one on the same items"
TURNED = {"min": "max", "max": "min"}


def remedies(case: Case) -> tuple[Remedy, ...]:
    mode = str(case.knob("run.early_stop_mode") or "")
    edits = (Edit("run.early_stop_mode", mode, TURNED[mode], "the better end"),) if mode in TURNED else ()
    return (Remedy("Turn the mode of the monitor round.", edits, "safe", "the kept checkpoint is the best of the log"),)
