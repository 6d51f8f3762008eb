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

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series

ID = "clip-too-small"
AREA = "clipping"
EXPLAINS = ("barely-learned", "too-slow", "stuck-from-start", "at-chance", "at-prior", "plateau", "always-clipped")
PRIOR = -3.0
USUAL = 1.0
TINY = 0.02  # global norms of networks that learn are 0.1 to 10, so that steps are cut at least fivefold
TRIAL = "fork with ten times the threshold"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    limit = case.knob("clip.norm")
    name = str(case.knob("optimizer.name") or "").lower()
    if not isinstance(limit, (int, float)) or limit <= 0:
        return Excluded("gradients are not clipped, as far as is known")
    if any(word in name for word in ("adam", "lion", "lamb", "ada", "rmsprop")):
        return Excluded(f"{name} normalises its steps: the threshold does not slow it")
    norm: Series | None = case.get("grad_norm")
    if norm is None and limit <= TINY:
        return [
            Evidence(
                3.0 + 0.7 * float(np.log2(TINY / limit)),  # each halving of the step makes it likelier
                f"gradients are clipped at {limit:g}: under plain SGD that is the length of a step",
                "norm",
            )
        ]
    if norm is None:
        return [Evidence(0.0, "the gradient norm is not logged", "norm")]
    share = float(np.mean(norm.values[norm.finite] > limit))
    middle = float(np.median(norm.values[norm.finite]))
    if share < 0.5:
        return Excluded(f"only {share:.0%} of the steps are clipped")
    bits = 1.0 if middle < 10 * limit else 3.5
    return [
        Evidence(
            bits,
            f"{share:.0%} of the steps are clipped, from a norm of {middle:.3g} to {limit:g}",
            "norm",
            (norm.place(0),),
        )
    ]


def remedies(case: Case) -> tuple[Remedy, ...]:
    limit, norm = case.knob("clip.norm"), case.get("grad_norm")
    if norm is None and (not isinstance(limit, (int, float)) or limit > TINY):
        return ()
    if norm is None:
        edit = Edit("clip.norm", limit, USUAL, "the usual threshold; the norms are not logged")
        text = f"Clip at {USUAL:g} and log the norm before clipping."
        return (Remedy(text, (edit,), "try", "most steps are not clipped, and the loss falls"),)
    new = float(f"{np.quantile(norm.values[norm.finite], 0.9):.2g}")
    return (
        Remedy(
            "Clip at the 90th percentile of the norms.",
            (Edit("clip.norm", limit, new, "90th percentile"),),
            "try",
            "a tenth of the steps is clipped",
        ),
    )
