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
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._settings import number, updates
from wheeltapper.finding import Edit, Evidence, Place, Remedy
from wheeltapper.run.model import Segment, Series
from wheeltapper.signals.statistics import noise_of

ID = "stale-resume"
AREA = "resume"
EXPLAINS = ("restart-jump", "spiked", "diverged", "declined-after-peak", "barely-learned", "at-chance", "at-prior")
PRIOR = -2.5
TRIAL = "evaluate the newest checkpoint: it must score as the run did before the interruption"

ROWS = 20
TAKEN_UP = re.compile(
    r"\b(resum\w+|loaded|restored)\b.{0,40}\b(from|at|checkpoint)\b", re.IGNORECASE
)  # not a setting of that name
FAR = 2.0  # intervals: one is lost in any interruption, part of a second if the last file is damaged


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    foreign = _foreign(case)
    if foreign:
        return foreign
    resumes = [(a, b) for a, b in pairwise(case.run.segments) if b.kind == "resume" and a.clock == b.clock]
    if not resumes:
        return Excluded("the record shows no resume")
    train: Series | None = case.get("train_loss")
    out = []
    for before, after in resumes:
        place = (Place(after.file, after.line),)
        if after.start < before.end:
            out += _went_back(before, after, _interval(case), place)
        elif train is not None and train.clock == after.clock:
            again = repeats_from(train, after.start)
            if again is not None:
                text = (
                    f"after the resume at {after.clock} {after.start:g} the loss repeats its course from {again:g} on"
                )
                out.append(Evidence(5.0, text, "course", place))
    return out or Excluded("no resume goes back further than a checkpoint or two")


def _foreign(case: Case) -> list[Evidence]:
    """The first launch of this record resumes already: from what another attempt left in the folder."""
    train: Series | None = case.get("train_loss")
    first = next((e for e in case.run.events if e.kind == "resume" and TAKEN_UP.search(e.text)), None)
    if train is None or first is None or not case.found("barely-learned", "at-chance", "at-prior", severity="ill"):
        return []
    spot = None if first is None else next((s for s in case.run.segments if s.file == first.file), None)
    if spot is None or first.line > spot.line or train.at[0] <= 1:
        return []
    out = [
        Evidence(
            4.5,
            f"the first launch here resumes at once: {first.text.strip()[:100]}",
            "first",
            (Place(first.file, first.line),),
        )
    ]
    lr, peak = case.get("lr"), number(case.knob("optimizer.lr"))
    if lr is not None and peak is not None and float(np.nanmax(lr.values)) < 0.1 * peak:
        out.append(
            Evidence(2.0, f"the rate is at most {np.nanmax(lr.values):.2g}, the settings say {peak:.2g}", "rate")
        )
    return out


def _went_back(before: Segment, after: Segment, every: float | None, place: tuple[Place, ...]) -> list[Evidence]:
    text = f"the resume goes back from {before.clock} {before.end:g} to {after.start:g}"
    if every is None or before.end - after.start <= FAR * every:
        return []
    return [Evidence(3.5, f"{text}, though a checkpoint is written every {every:g}", "lost", place)]


def repeats_from(train: Series, start: float) -> float | None:
    """The earlier position whose course the loss repeats after `start`, though the counter goes on; None: it does not.

    The course must fall by more than its noise there, or any flat stretch would do, and lie well before the resume.
    """
    good = train.finite
    past, at = train.values[good & (train.at < start)], train.at[good & (train.at < start)]
    new = train.values[good & (train.at >= start)]
    rows = min(len(new), len(past) // 3, 100)
    if rows < ROWS:
        return None
    past, at = past[-4000:], at[-4000:]
    sigma = max(noise_of(past).sigma, 1e-12)
    windows = np.lib.stride_tricks.sliding_window_view(past, rows)
    # The difference of two noisy curves has a median size of 0.95 sigma if they are the same.
    error = np.median(np.abs(windows - new[:rows]), axis=1)
    best = int(np.argmin(error))
    fall = float(np.median(new[: rows // 4]) - np.median(new[rows - rows // 4 : rows]))
    if error[best] > 1.5 * sigma or fall < 4 * sigma or best + rows > 0.7 * len(past):
        return None
    return float(at[best])


def _interval(case: Case) -> float | None:
    """Distance between checkpoints on the clock of the segments: by the settings, else by the files."""
    clock = case.run.segments[0].clock if case.run.segments else "step"
    every = number(case.knob("checkpoint.every"))
    if every is not None and case.knobs is not None:
        unit = case.knobs["checkpoint.every"].unit
        if clock == "epoch" and unit == "epochs":
            return every
        return updates(case, every, unit) if clock == "step" else None
    spots = sorted({c.epoch if clock == "epoch" else c.step for c in case.run.checkpoints} - {None})  # type: ignore[type-var]
    gaps = sorted(b - a for a, b in pairwise(s for s in spots if s is not None) if b > a)
    return gaps[len(gaps) // 2] if len(gaps) >= 2 else None


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
