"""The learning rate is too high for this model, batch and stage.

## What happens
Steps overshoot: past a threshold set by the curvature the loss grows instead of falling, and the optimizer
leaves the region it had found. Often it happens at the peak of the schedule, at the end of the warm-up.

## How it shows
Loss or metric breaks near the highest learning rate so far; the gradient norm rises first; a twin run with
a lower rate is stable.

## What else looks like this
fp16 overflow (the loss scale falls first), a bad batch or shard (a single step, without a rise of norms
before it), missing warm-up (in the first steps), a resume that lost the optimizer state.

## When this is wrong
"Lower the rate" is the standard answer and often wrong: runs have diverged at a lower rate and been stable
at a higher one. One run cannot prove it.

## Fix
Halve the rate, or lengthen the warm-up; clip at the 90th percentile of the norms of the quiet part.

## Trial
Fork before the onset with the rate at 1, 1/2 and 1/4, same data and seed; the control must break again.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- Cohen et al. 2021, Gradient Descent on Neural Networks Typically Occurs at the Edge of Stability
  (arXiv:2103.00065).
- Wu et al. 2018, Understanding Short-Horizon Bias in Stochastic Meta-Optimization (arXiv:1803.02021).
- wandb/senpai issues 2873, 3072 and 3152 (a lower rate that diverged where a higher one did not).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import adaptive, usual_rate
from wheeltapper.run.model import Series

ID = "lr-too-high"
AREA = "learning rate"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "above-start", "diverged", "not-finite", "collapsed", "at-chance", "stuck-from-start",
    "constant-metric", "plateau", "spiked", "declined-after-peak", "grad-norm-growth", "slow-rise", "val-swings",
    "policy-leaps", "lost-at-the-peak", "scale-collapse",
)  # fmt: skip
SHOWS = {"rate-size": "high"}
FORBIDS = {"rate-size": "low"}
PROVED_BY = ("rate-beyond-recipes",)
TRIAL = "fork before the onset with the learning rate at 1, 1/2 and 1/4, same data and seed, five of each"
HIGHEST_ADAPTIVE, HIGHEST_PLAIN = 1e-2, 2.0  # the upper ends of public recipes


def _beyond(case: Case) -> bool:
    """Whether no recipe of this kind of optimizer has such a rate."""
    lr: Series | None = case.get("lr")
    peak = float(np.nanmax(lr.values)) if lr is not None and lr.finite.any() else case.knob("optimizer.lr")
    return isinstance(peak, (int, float)) and peak > (HIGHEST_ADAPTIVE if adaptive(case) else HIGHEST_PLAIN)


def _how_far(case: Case, rate: float) -> tuple[float, str]:
    """By how much to cut the rate, as far as the run tells, and why."""
    lr: Series | None = case.get("lr")
    onset = case.since(lr.clock) if lr is not None else None
    if lr is not None and onset is not None and (lr.at <= onset).any():
        now, peak = float(lr.values[lr.at <= onset][-1]), float(np.nanmax(lr.values))
        if 0 < now < 0.5 * peak and int(np.nanargmax(lr.values)) > int((lr.at <= onset).sum()) - 1:
            return 2 * peak / now, f"half of {now:.2g}, where it broke on the way up"
    # Of an optimizer that is not known no usual rate is known either.
    if adaptive(case) is not None and _beyond(case) and usual_rate(case) < 0.5 * rate:
        return rate / usual_rate(case), "what runs of this length are run with: no recipe has a rate like this one"
    learned = case.found("diverged", "collapsed", "spiked", "declined-after-peak", "slow-rise")
    if not learned and case.found("at-chance", "barely-learned", "above-start", severity="ill"):
        return 10.0, "a tenth: it never learned at this rate"
    return 2.0, "half the rate"


def remedies(case: Case) -> tuple[Remedy, ...]:
    rate = case.knob("optimizer.lr")
    edits: tuple[Edit, ...] = ()
    text = "Halve the learning rate and start again, at the latest from a checkpoint before the onset."
    if isinstance(rate, (int, float)) and rate > 0:
        factor, why = _how_far(case, float(rate))
        edits = (Edit("optimizer.lr", rate, float(f"{rate / factor:.3g}"), why),)
        if factor > 2:
            text = f"Cut the learning rate to {rate / factor:.3g} ({why}) and start again."
    return (Remedy(text, edits, "try", "the loss passes the onset without leaving its band"),)
