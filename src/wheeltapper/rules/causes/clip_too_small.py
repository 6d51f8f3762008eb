"""Gradients are clipped so hard that SGD hardly moves.

## What happens
With plain SGD the step is lr x clip along the gradient: a small threshold is a small learning rate. With Adam the
threshold cancels out once everything is clipped.

## How it shows
The gradient norm is far above the threshold at every step, and training is slow; only with SGD.

## What else looks like this
A learning rate that is too low.

## When this is wrong
The optimizer is Adam or another that normalises its steps, or the norm is mostly below the threshold.

## Fix
A threshold at the 90th percentile of the norms of the quiet part.

## Trial
Fork with ten times the threshold: with SGD the loss must fall faster.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- PyTorch, torch/nn/utils/clip_grad.py.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "clip-too-small"
AREA = "clipping"
ABOUT = "learning"
EXPLAINS = ("barely-learned", "too-slow", "stuck-from-start", "at-chance", "at-prior", "plateau", "always-clipped")
SHOWS = {"clip-size": "low", "clip-ratio": "low", "always-clipped": "seen", "train-gain": "low"}
FORBIDS = {"clip-ratio": "in", "diverged": "seen"}
PROVED_BY = ("clip-to-nothing",)
TRIAL = "fork with ten times the threshold"
USUAL = 1.0


def remedies(case: Case) -> tuple[Remedy, ...]:
    limit, norm = case.knob("clip.norm"), case.get("grad_norm")
    new = (
        float(f"{np.quantile(norm.values[norm.finite], 0.9):.2g}") if norm is not None and norm.finite.any() else USUAL
    )
    set_ = isinstance(limit, (int, float)) and 0 < limit < new
    edits = (Edit("clip.norm", limit, new, "as nine of ten norms, or what is usual"),) if set_ else ()
    text = "Clip at the 90th percentile of the norms, or at 1 where they are not logged."
    return (Remedy(text, edits, "try", "a tenth of the steps is clipped, and the loss falls"),)
