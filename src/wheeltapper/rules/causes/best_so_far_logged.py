"""The log shows the best score so far, not the current one.

## What happens
The value that decides about the checkpoint is printed instead of the value of this evaluation. Any decline is
hidden, and the curve can only stand or improve.

## How it shows
The score never gets worse, repeats to all digits for stretches, and steps up between them.

## What else looks like this
A stale evaluation (no steps up at all), weights that do not move, a score with few possible values on a small
set.

## When this is wrong
The score got worse once: a best-so-far cannot.

## Fix
Log the current score, and the best beside it under its own name.

## Trial
Read the line that logs the score; or evaluate two checkpoints of one stretch: different scores decide.

## References
- BigScience 104B chronicles (bigscience-workshop/bigscience, train/tr8-104B-wide).
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "best-so-far-logged"
AREA = "evaluation"
ABOUT = "evaluation"
EXPLAINS = ("constant-metric",)
SHOWS = {"identical-scores": "high", "constant-metric": "seen"}
PROVED_BY = ("best-so-far-kept-in-log",)
TRIAL = "evaluate two checkpoints of one flat stretch: different scores decide"
REMEDY = Remedy("Log the current score beside the best one.", (), "safe", "the logged score gets worse at times")
