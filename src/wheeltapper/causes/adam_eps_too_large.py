"""Adam's epsilon is as large as the gradients.

## What happens
Adam divides each gradient by its own size plus epsilon. Where the gradients are not much larger than epsilon
the division no longer normalises them, and the steps shrink with the gradients.

## How it shows
Slow or no progress at an ordinary rate; the root-mean-square gradient (norm over the square root of the number
of parameters) is below about ten times epsilon.

## What else looks like this
A rate that is too low, frozen parameters, bf16 weights that stop moving.

## When this is wrong
The gradients are a hundred times epsilon or more; or the logged norm is multiplied by a loss scale.

## Fix
Epsilon at 1e-8, or smaller for very wide models; or a loss that is not divided down to nothing.

## Trial
Fork with epsilon a thousandth of its value: the loss must fall faster at once.

## References
- Wortsman et al. 2023, Small-scale proxies for large-scale Transformer training instabilities
  (arXiv:2309.14322).
- Executed with torch 2.13: a loss times 1e-8 ends at 2.03 instead of 0.754, because epsilon rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._settings import number
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series

ID = "adam-eps-too-large"
AREA = "learning rate"
EXPLAINS = ("too-slow", "stuck-from-start", "at-chance", "at-prior", "plateau", "worse-than-trivial")
PRIOR = -3.5
TRIAL = "fork with epsilon at a thousandth of its value, a few hundred steps"

USUAL = 1e-8  # torch's default
LARGE = 1e-4  # gradients of a mean loss have an RMS of 1e-6 to 1e-3 in common models; such an epsilon reaches them


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    name, eps = str(case.knob("optimizer.name") or "").lower(), number(case.knob("optimizer.eps"))
    if name and "adam" not in name and "lamb" not in name:
        return Excluded(f"{name} has no such epsilon")
    if eps is None:
        return Excluded("epsilon is not known")
    if case.found("diverged", "not-finite", "collapsed", severity="ill"):
        return Excluded("the run moved far and broke: a large epsilon only shortens steps")
    size = _typical_gradient(case)
    if size is None:
        if eps >= LARGE:
            return [Evidence(2.0, f"epsilon is {eps:g}, where gradients are often smaller", "level")]
        return Excluded(f"epsilon is {eps:g}, and no gradient norm says that gradients are as small")
    ratio = size / eps
    if ratio > 100:
        return Excluded(f"gradients are about {size:.1g}, {ratio:.0g} times epsilon")
    text = (
        f"gradients are about {size:.1g} per parameter, epsilon is {eps:g}: steps shrink to {ratio / (1 + ratio):.0%}"
    )
    # Below epsilon the step is less than half of what the rate says; within ten of it, damped but alive.
    return [Evidence(5.5 if ratio < 1 else 1.5 if ratio < 10 else 0.0, text, "level")]


def _typical_gradient(case: Case) -> float | None:
    norm: Series | None = case.get("grad_norm")
    params = number(case.run.fact("n_params")) or number(case.knob("model.params"))
    if norm is None or params is None or case.knob("precision") == "fp16":  # an fp16 norm may be scaled (AMP-19)
        return None
    middle = float(np.median(norm.values[norm.finite]))
    return middle / math.sqrt(params) if middle > 0 else None


def remedies(case: Case) -> tuple[Remedy, ...]:
    eps = number(case.knob("optimizer.eps"))
    if eps is None:
        return ()
    new = USUAL if eps > USUAL else eps / 1000
    return (
        Remedy(
            f"Set epsilon to {new:g}.",
            (Edit("optimizer.eps", eps, new, "well below the gradients"),),
            "try",
            "the loss falls faster from the first steps",
        ),
    )
