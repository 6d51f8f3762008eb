"""The curriculum outruns the model.

## What happens
The difficulty rises faster than the model learns: it loses what it had on easy items and gains nothing on hard
ones.

## How it shows
At fixed difficulty the score gets worse after a step of the curriculum.

## What else looks like this
The loss rises with the difficulty by design: that is no sign of anything. Divergence at the same time for
another reason.

## When this is wrong
The score at fixed difficulty holds or improves; or the trouble began before the difficulty rose.

## Fix
A slower or longer ramp, a share of easy items throughout.

## Trial
2 x 2: the checkpoints before and after the step, each on the data before and after.

## References
- architvasan/protein_lig_sedd, TRAINING_LOSS_ANALYSIS_SUMMARY.md and its curriculum code.
- A change of difficulty and a change of the model are told apart by both checkpoints on both data.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import series_like, weights_live
from wheeltapper.finding import Edit, Evidence, Remedy

ID = "curriculum-too-hard"
AREA = "curriculum"
EXPLAINS = ("declined-after-peak", "collapsed", "diverged", "spiked", "slow-rise", "plateau", "not-finite")
PRIOR = -3.0
TRIAL = "2 x 2: the checkpoints before and after the step of difficulty, each on the data before and after"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    levels = [s for s in series_like(case.run, r"difficulty|curriculum")
              if float(np.ptp(s.values[s.finite])) > 0]  # fmt: skip
    stages = [e for e in case.run.events if e.kind == "stage" and e.at is not None]
    if not levels and not stages and not case.knob("curriculum.enabled"):
        return Excluded("the difficulty does not change, as far as is known")
    fixed = [f for f in case.found("declined-after-peak", "collapsed", severity="ill") if f.onset is not None]
    if not fixed and (whole := weights_live(case)):
        return [Evidence(4.0, f"{whole}, and the difficulty of what they are asked rises meanwhile", "fixed")]
    if not fixed:
        return [Evidence(-2.0, "a training loss that rises with the difficulty says nothing", "fixed")]
    onset = fixed[0].onset or 0.0
    starts = [float(e.at) for e in stages if e.at is not None and e.clock == fixed[0].clock]
    for series in levels:
        if series.clock == fixed[0].clock:
            x = series.values[series.finite]
            starts += [float(p) for p in series.at[series.finite][1:][np.diff(x) > 0]]
    if not starts:
        return []
    if onset < min(starts):
        return Excluded("the score fell before the difficulty rose")
    steps_up = len(starts) <= 20  # a ramp that always rises coincides with everything
    width = 0.02 * max(onset, max(starts))
    if steps_up and any(0 <= onset - start <= width for start in starts):
        return [
            Evidence(4.0, "the score on held-out data fell right after a step of difficulty", "timing", fixed[0].places)
        ]
    return [Evidence(0.5, "the score on held-out data fell while the difficulty rose", "timing", fixed[0].places)]


def remedies(case: Case) -> tuple[Remedy, ...]:
    steps = case.knob("curriculum.steps")
    edits = (
        (Edit("curriculum.steps", steps, 2 * steps, "twice as slow"),) if isinstance(steps, int) and steps > 0 else ()
    )
    return (
        Remedy("Slow the curriculum down, and keep a share of easy items.", edits, "try",
               "the score at fixed difficulty does not fall after a step"),
    )  # fmt: skip
