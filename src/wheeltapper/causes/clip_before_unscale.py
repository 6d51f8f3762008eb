"""Gradients are clipped while they are still multiplied by the loss scale.

## What happens
The clip acts on gradients that are larger by the loss scale, so its threshold is really c/scale: 1.5e-5 instead of
1 at 65536. With SGD the steps become that much shorter; it changes whenever the scale does.

## How it shows
The logged gradient norm doubles when the loss scale doubles, every step is clipped, and training hardly moves.

## What else looks like this
A threshold that is too small by itself, a rate that is too low; a norm that is only logged before unscaling.

## When this is wrong
The optimizer is adaptive: the direction survives, and the step does not depend on the size. No scaler is at work.

## Fix
scaler.unscale_(optimizer) before clipping.

## Trial
One step with and without unscale_: the norm returned by the clip must differ by the scale.

## References
- PyTorch, torch/amp/grad_scaler.py.
- PyTorch, docs/source/notes/amp_examples.rst.
- Executed with torch 2.13: an update of norm 1.53e-5 instead of 1.0 at a scale of 65536.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._settings import adaptive
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "clip-before-unscale"
AREA = "precision"
EXPLAINS = (
    "too-slow",
    "stuck-from-start",
    "at-chance",
    "at-prior",
    "never-left-zero",
    "worse-than-trivial",
    "always-clipped",
)
PRIOR = -3.0
TRIAL = "one step with and without scaler.unscale_ before the clip"

CHANGES = 3  # of the scale: with fewer, noise of the norm can imitate a slope of 1


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    if case.knob("precision") in ("bf16", "fp32", "tf32") and not case.audited("clip-before-unscale"):
        return Excluded(f"the run is in {case.knob('precision')}: nothing is scaled")
    if case.found("diverged", "not-finite", "collapsed", severity="ill"):
        return Excluded("the run moved far and broke: clipped to almost nothing it could not")
    out = proofs(case, "clip-before-unscale")
    norm: Series | None = case.get("grad_norm")
    scale: Series | None = case.get("loss_scale")
    slope = _slope(norm, scale) if norm is not None and scale is not None else None
    if slope is not None and 0.7 < slope < 1.3:
        # Frameworks that clip correctly log such norms too (AMP-19), so this alone is no proof.
        out.append(Evidence(2.5, f"the gradient norm follows the loss scale (slope {slope:.2f} of their logs)", "norm"))
    scaled = [f for f in case.found("always-clipped") if f.numbers.get("scaled")]
    if scaled:
        out.append(Evidence(2.5, scaled[0].summary, "norm", scaled[0].places))
    elif slope is not None and abs(slope) < 0.3 and not out:
        return Excluded("the gradient norm does not follow the loss scale")
    if out and adaptive(case):
        out.append(Evidence(-3.0, "the optimizer is adaptive: the size of the gradient does not matter", "optimizer"))
    return out or Excluded("neither code nor norms show it")


def _slope(norm: Series, scale: Series) -> float | None:
    """How the log of the norm moves with the log of the scale, over the changes of the scale."""
    at = norm.on(scale.clock)
    good = scale.finite & (scale.values > 0)
    if at is None or int(good.sum()) < 2:
        return None
    log_scale, spots = np.log2(scale.values[good]), scale.at[good]
    usable = norm.finite & (norm.values > 0)
    log_norm, at = np.log2(norm.values[usable]), at[usable]
    moves, steps = [], []
    for i in np.flatnonzero(np.diff(log_scale) != 0):
        before, after = log_norm[at <= spots[i]][-5:], log_norm[at >= spots[i + 1]][:5]
        if len(before) and len(after):
            moves.append(float(np.median(after) - np.median(before)))
            steps.append(float(log_scale[i + 1] - log_scale[i]))
    if len(steps) < CHANGES:
        return None
    return float(np.dot(moves, steps) / np.dot(steps, steps))


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Call scaler.unscale_(optimizer) before clipping.",
            (),
            "safe",
            "the clipped share falls and the norm no longer follows the scale",
        ),
    )
