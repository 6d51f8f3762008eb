"""The run continued from an older checkpoint than its last one.

## What happens
An interrupted run was started again from a checkpoint far back: a path in the settings that was never updated, a
"best" file instead of the last, or an old file found first. The steps in between are lost and done again.

## How it shows
The step counter goes back at a resume by much more than the distance between checkpoints; or the counter goes on and
the loss repeats the course it took long before.

## What else looks like this
A planned roll-back to before a spike, a relaunch from the start, a resume without the optimizer's state (a bump at the
same step, without going back).

## When this is wrong
The roll-back was meant, or the newer checkpoints were damaged.

## Fix
Resume from the newest whole checkpoint; print its step when loading.

## Trial
Load the newest checkpoint and evaluate it: it must score as the run did before the interruption.

## References
- PyTorch, torch/optim/optimizer.py (load_state_dict).
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), training loss patterns.
- arghyaiitb/assignment_9, TRAINING_ISSUES_RESOLVED.md, its train.py and the 80-epoch log that dies in the
  last epoch.
"""

from __future__ import annotations

import re

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series

ID = "stale-resume"
AREA = "resume"
ABOUT = "learning"
EXPLAINS = ("restart-jump", "spiked", "diverged", "declined-after-peak", "barely-learned", "at-chance", "at-prior")
SHOWS = {"restart-jump": "seen", "train-loss-lost": "high"}
TRIAL = "evaluate the newest checkpoint: it must score as the run did before the interruption"
TAKEN_UP = re.compile(
    r"\b(resum\w+|loaded|restored)\b.{0,40}\b(from|at|checkpoint)\b", re.IGNORECASE
)  # not a setting of that name


def _foreign(case: Case) -> bool:
    """Whether the first launch of this record resumes already: from what another attempt left in the folder."""
    train: Series | None = case.get("train_loss")
    first = next((e for e in case.run.events if e.kind == "resume" and TAKEN_UP.search(e.text)), None)
    if train is None or first is None or not case.found("barely-learned", "at-chance", "at-prior", severity="ill"):
        return False
    spot = next((s for s in case.run.segments if s.file == first.file), None)
    return spot is not None and first.line <= spot.line and bool(train.at[0] > 1)


def remedies(case: Case) -> tuple[Remedy, ...]:
    if _foreign(case):
        edits = (Edit("resume.auto", True, False, "begins anew"),) if case.knob("resume.auto") is True else ()
        text = "Start anew: with the automatic resume off, or in an empty folder."
        return (Remedy(text, edits, "safe", "the first epoch is the first one, and the loss falls from there"),)
    return (
        Remedy(
            "Resume from the newest whole checkpoint.",
            (),
            "safe",
            "loss and score go on where they were before the interruption",
        ),
    )
