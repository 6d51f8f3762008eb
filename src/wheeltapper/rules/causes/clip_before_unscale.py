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

from wheeltapper.finding import Remedy

ID = "clip-before-unscale"
AREA = "precision"
ABOUT = "learning"
EXPLAINS = (
    "too-slow", "stuck-from-start", "at-chance", "at-prior", "never-left-zero", "worse-than-trivial",
    "always-clipped",
)  # fmt: skip
SHOWS = {"always-clipped": "seen", "train-gain": "low"}
FORBIDS = {"diverged": "seen", "not-finite": "seen", "collapsed": "seen"}
PROVED_BY = ("clip-before-unscale",)
TRIAL = "one step with and without scaler.unscale_ before the clip"
REMEDY = Remedy(
    "Call scaler.unscale_(optimizer) before clipping.",
    (),
    "safe",
    "the clipped share falls and the norm no longer follows the scale",
)
