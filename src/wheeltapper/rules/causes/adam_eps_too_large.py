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

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import number

ID = "adam-eps-too-large"
AREA = "learning rate"
ABOUT = "learning"
EXPLAINS = ("too-slow", "stuck-from-start", "at-chance", "at-prior", "plateau", "worse-than-trivial")
SHOWS = {"gradient-size": "low", "still-falling": "high", "skill": "low"}
FORBIDS = {"diverged": "seen", "not-finite": "seen", "collapsed": "seen"}
TRIAL = "fork with epsilon at a thousandth of its value, a few hundred steps"
USUAL = 1e-8  # torch's default


def remedies(case: Case) -> tuple[Remedy, ...]:
    eps = number(case.knob("optimizer.eps"))
    new = USUAL if eps is None or eps > USUAL else eps / 1000
    edits = () if eps is None else (Edit("optimizer.eps", eps, new, "well below the gradients"),)
    return (Remedy(f"Set epsilon to {new:g}.", edits, "try", "the loss falls faster from the first steps"),)
