"""After a resume the run reads the same data again.

## What happens
The position of the data loader (or its random state) is not saved. After the resume the samples of the last stretch
come again: the loss on them is too low, because they were just learned, and returns to its level afterwards. Nothing is
wrong with the model at that return.

## How it shows
The training loss drops at a resume, stays low, and jumps back to the level before the resume; validation does not move.

## What else looks like this
A learning rate that was cut at the resume (the loss stays low), a level shift from bad data (no resume before it).

## When this is wrong
The loss does not drop at the resume, or ends above the level it had before.

## Fix
Save the sampler's position and seed; skip what was read.

## Trial
Evaluate the checkpoint of the resume on the batches that follow it: a loss as low shows that they were seen.

## References
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), training loss patterns.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.finding import Evidence, Place, Remedy
from wheeltapper.run.model import Series
from wheeltapper.signals.statistics import noise_of

ID = "data-repeated-after-resume"
AREA = "resume"
EXPLAINS = ("spiked", "restart-jump", "diverged")
PRIOR = -2.5
TRIAL = "evaluate the checkpoint of the resume on the batches that follow it"

Z = 4.0  # of the noise of single rows; the levels are medians of five and more


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    resumes = [s for s in case.run.segments if s.kind == "resume"]
    if not resumes:
        return Excluded("the record shows no resume")
    train: Series | None = case.get("train_loss")
    shifts = [f for f in case.found("spiked", "diverged", severity="ill") if f.onset is not None]
    if train is None or not shifts:
        return Excluded("no jump of the training loss follows a resume")
    onset = float(shifts[0].onset or 0.0)
    for segment in resumes:
        if segment.start >= onset:
            continue
        good = train.finite
        before = train.values[good & (train.at < segment.start)][-20:]
        between = train.values[good & (train.at >= segment.start) & (train.at < onset)]
        after = train.values[good & (train.at >= onset)][-20:]
        if min(len(before), len(between), len(after)) < 5:
            continue
        sigma = max(noise_of(train.values[good & (train.at < segment.start)]).sigma, 1e-12)
        level, low, back = (float(np.median(part)) for part in (before, between, after))
        if low < level - Z * sigma and abs(back - level) < 0.5 * (level - low):
            text = f"the loss dropped from {level:.4g} to {low:.4g} at the resume and came back to {back:.4g}"
            return [
                Evidence(6.0, text, "levels", (Place(segment.file, segment.line),)),
                *proofs(case, "resume-incomplete"),
            ]
    return Excluded("the loss does not drop at a resume and return to its old level")


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Save and restore the position of the data loader.",
            (),
            "safe",
            "the loss continues across the resume without a drop",
        ),
    )
