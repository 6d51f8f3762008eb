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

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._settings import length_of_run, number
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.simulate.ema import first_copy_weight

ID = "ema-horizon-too-long"
AREA = "averaging"
EXPLAINS = ("at-chance", "never-left-zero", "constant-metric", "ema-raw-gap", "below-baseline", "val-left-behind")
PRIOR = -2.0
TRIAL = "evaluate raw and averaged weights on the same items at two checkpoints: the gap must shrink like decay^updates"


STALE = 0.5  # half of the average is still its first copy


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    out = proofs(case, "ema-horizon-too-long")
    decay = case.knob("ema.decay")
    if case.knobs is not None and not decay and not out:
        return Excluded("no average of the weights is configured")
    steps = _updates(case)
    if (
        isinstance(decay, (int, float))
        and 0 < decay < 1
        and steps
        and case.knob("ema.impl") in (None, "torch", "timm", "constant")
    ):
        every = case.knob("ema.every") or 1
        left = first_copy_weight(float(decay), int(steps / every))
        if left > STALE:
            out.append(
                Evidence(
                    5.0,
                    f"decay {decay:g} every {every:g} steps leaves {left:.0%} of the average on its first copy after {steps:,.0f} steps",
                    "arithmetic",
                )
            )
        elif left < 0.05:
            return Excluded(f"after {steps:,.0f} steps only {left:.1%} of the average is its first copy")
    crawl = _crawls(case)
    if crawl:
        out.append(Evidence(4.0, crawl, "curve"))
    return out or [Evidence(-2.0, "nothing shows a long average", "arithmetic")]


def _crawls(case: Case) -> str:
    """An average that is still its first copy improves at every evaluation, and by nearly nothing."""
    left = case.found("val-left-behind", severity="ill")
    val: Series | None = case.get("val_loss")
    if not left or val is None or case.knob("ema.decay") is None:
        return ""
    steps = np.diff(val.values[val.finite])
    share = float(np.mean(steps <= 0))
    return (
        f"{val.name} improves at {share:.0%} of the evaluations, by nearly nothing: an average far behind"
        if share > 0.85
        else ""
    )


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
