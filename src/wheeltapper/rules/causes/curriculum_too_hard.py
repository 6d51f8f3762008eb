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

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "curriculum-too-hard"
AREA = "curriculum"
ABOUT = "learning"
EXPLAINS = ("declined-after-peak", "collapsed", "diverged", "spiked", "slow-rise", "plateau", "not-finite")
SHOWS = {"score-lost": "high", "declined-after-peak": "seen"}
TRIAL = "2 x 2: the checkpoints before and after the step of difficulty, each on the data before and after"


def remedies(case: Case) -> tuple[Remedy, ...]:
    steps = case.knob("curriculum.steps")
    edits = (
        (Edit("curriculum.steps", steps, 2 * steps, "twice as slow"),) if isinstance(steps, int) and steps > 0 else ()
    )
    return (
        Remedy(
            "Slow the curriculum down, and keep a share of easy items.",
            edits,
            "try",
            "the score at fixed difficulty does not fall after a step",
        ),
    )
