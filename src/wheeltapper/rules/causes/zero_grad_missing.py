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

from wheeltapper.finding import Remedy

ID = "zero-grad-missing"
AREA = "loop"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "diverged", "oscillating", "grad-norm-growth", "stuck-from-start", "at-chance", "at-prior",
    "above-start", "collapsed", "constant-metric", "declined-after-peak", "not-finite", "plateau", "spiked",
)  # fmt: skip
SHOWS = {"gradient-growth": "high", "grad-norm-growth": "seen"}
PROVED_BY = ("zero-grad-missing",)
TRIAL = "ten steps with the gradient norm of one fixed batch printed: it must not grow"
REMEDY = Remedy(
    "Clear the gradients after each optimizer step.", (), "safe", "the gradient norm no longer grows with the step"
)
