"""Gradients are never cleared, so every step adds to all before it.

## What happens
The step at t uses the sum of all gradients so far: momentum without end.

## How it shows
The gradient norm grows about linearly with the step from the first one; SGD diverges, Adam oscillates.

## What else looks like this
A learning rate that is too high grows exponentially; a real growth of norms comes later.

## When this is wrong
The norm does not grow from the start, or the code clears the gradients.

## Fix
Call zero_grad after each optimizer step.

## Trial
Ten steps with a print of the gradient norm of one fixed batch: it must not grow.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "zero-grad-missing"
AREA = "loop"
EXPLAINS = (
    "barely-learned",
    "diverged",
    "oscillating",
    "grad-norm-growth",
    "stuck-from-start",
    "at-chance",
    "at-prior",
    "above-start",
)
PRIOR = -3.5
TRIAL = "ten steps with the gradient norm of one fixed batch printed: it must not grow"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    out = proofs(case, "zero-grad-missing")
    norm: Series | None = case.get("grad_norm")
    if norm is not None and int(norm.finite.sum()) >= 20:
        x = norm.values[norm.finite]
        early = x[: max(10, len(x) // 5)]
        line = np.corrcoef(np.arange(len(early)), early)[0, 1] if np.std(early) > 0 else 0.0
        if line > 0.97 and early[-1] > 5 * max(early[0], 1e-30):
            out.append(
                Evidence(
                    4.0, "the gradient norm grows in a straight line from the first step", "norm", (norm.place(0),)
                )
            )
        elif not out:
            return Excluded("the gradient norm does not grow from the first step")
    return out or [Evidence(-1.0, "neither code nor norms show it", "norm")]


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Clear the gradients after each optimizer step.",
            (),
            "safe",
            "the gradient norm no longer grows with the step",
        ),
    )
