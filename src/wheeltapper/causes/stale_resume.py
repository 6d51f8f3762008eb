"""The run continued from an older checkpoint than its last one.

## What happens
An interrupted run was started again from a checkpoint far back: a path in the settings that was never updated, a
"best" file instead of the last, or an old file found first. The steps in between are lost and done again.

## How it shows
The step counter goes back at a resume by much more than the distance between checkpoints; loss and score return to
what they were then.

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
KNOWLEDGE OUT-16, OUT-21.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._settings import number, updates
from wheeltapper.finding import Evidence, Place, Remedy

ID = "stale-resume"
AREA = "resume"
EXPLAINS = ("restart-jump", "spiked", "declined-after-peak", "starts-late")
PRIOR = -2.5
TRIAL = "evaluate the newest checkpoint: it must score as the run did before the interruption"

FAR = 2.0  # intervals: one is lost in any interruption, part of a second if the last file is damaged


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    every = _interval(case)
    back = [
        (before.end - after.start, before, after)
        for before, after in pairwise(case.run.segments)
        if after.kind == "resume" and before.clock == after.clock and after.start < before.end
    ]
    if not back:
        return Excluded("no resume in the record goes back")
    lost, before, after = max(back, key=lambda item: item[0])
    place = Place(after.file, after.line)
    text = f"the resume goes back from {before.clock} {before.end:g} to {after.start:g}"
    if every is None:
        return [Evidence(1.0, f"{text}; how often checkpoints are written is not known", "lost", (place,))]
    if lost <= FAR * every:
        return Excluded(f"{text}, within {FAR:g} checkpoint intervals of {every:g}")
    return [Evidence(3.5, f"{text}, though a checkpoint is written every {every:g}", "lost", (place,))]


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
    return (
        Remedy(
            "Resume from the newest whole checkpoint.",
            (),
            "safe",
            "loss and score go on where they were before the interruption",
        ),
    )
