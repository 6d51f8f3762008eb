"""The average of the weights is still made of the first weights.

## What happens
An exponential average with decay b forgets its first copy only after about 1/(1 - b) updates. Updated rarely, or over a
short run, most of it is still the random start.

## How it shows
The averaged model scores at chance or far below the raw one, and recovers as b^updates decays; the raw model is fine.

## What else looks like this
Stale BatchNorm statistics in the average (recomputing them helps), an average that is never updated at all.

## When this is wrong
The implementation ramps its decay (diffusers, ema-pytorch, SEDD): then the same number is no trouble. It is computed here
for the implementation that the run uses, and never judged by the bare number.

## Fix
A decay whose horizon is a tenth of the run or less, updated at every step; or a ramp.

## Trial
Evaluate raw and averaged weights on the same items at two checkpoints: the gap must shrink like b^updates.

## References
- PyTorch, torch/optim/swa_utils.py.
- Diffusers, src/diffusers/training_utils.py, EMAModel (huggingface/diffusers).
- lucidrains/ema-pytorch (update_every, the ramp of the decay).
- huggingface/pytorch-image-models issues 11, 188 and 1182 (an average younger than its horizon).
- arghyaiitb/assignment_9, train.py: decay 0.9999 updated every 10 steps in a run of 37,500.
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import length_of_run, number

ID = "ema-horizon-too-long"
AREA = "averaging"
ABOUT = "evaluation"
EXPLAINS = ("at-chance", "never-left-zero", "constant-metric", "ema-raw-gap", "below-baseline", "val-left-behind")
SHOWS = {"average-memory": "high", "average-gap": "high"}
FORBIDS = {"average-gap": "in"}
PROVED_BY = ("ema-horizon-too-long", "ema-per-micro-step", "average-never-updated", "average-wrong-way")
TRIAL = "evaluate raw and averaged weights on the same items at two checkpoints: the gap must shrink like decay^updates"


def _updates(case: Case) -> float | None:
    progress = case.get("progress")
    if progress is None or progress.at is None:
        return None
    if progress.clock == "step":
        return float(progress.at)
    per_epoch = case.run.fact("steps_per_epoch")
    return (
        float(progress.at) * float(per_epoch)
        if progress.clock == "epoch" and isinstance(per_epoch, (int, float))
        else None
    )


def remedies(case: Case) -> tuple[Remedy, ...]:
    steps = length_of_run(case, "steps") or _updates(case)  # a run that stopped early was planned for longer
    edits: tuple[Edit, ...] = ()
    if steps:
        new = round(1 - 10 / max(steps, 20), 6)
        edits = (Edit("ema.decay", case.knob("ema.decay"), new, "horizon of a tenth of the run"),)
        every = number(case.knob("ema.every"))
        if every is not None and every > 1:  # the horizon counts updates: at one in ten it would be ten times as long
            edits = (*edits, Edit("ema.every", case.knob("ema.every"), 1, "updated at every step"))
    text = "Shorten the average to a tenth of the run, updated at every step."
    return (Remedy(text, edits, "try", "the averaged score is at least the raw one"),)
