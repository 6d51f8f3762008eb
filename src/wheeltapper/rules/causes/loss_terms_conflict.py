"""Terms of the loss pull against each other, and one of them loses.

## What happens
The weighted sum falls because the large or easy terms fall; a smaller one is given up. With constraints (boundary
conditions, regularised targets) the result breaks the constraint while the curve looks fine.

## How it shows
One term rises or stays while the total falls and flattens; the terms that are left make up nearly all of the total.

## What else looks like this
Terms that rise by design (KL, adversarial); a term at its own floor.

## When this is wrong
The term is at its floor and the task is met.

## Fix
Weigh the terms by their gradients, not their values; normalise them; train the lost one first.

## Trial
Fork with the lost term's weight at ten times: it must fall, and the others must show what that costs.

## References
- Yu et al. 2020, Gradient Surgery for Multi-Task Learning (arXiv:2001.06782).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "loss-terms-conflict"
AREA = "objective"
ABOUT = "learning"
EXPLAINS = ("plateau", "part-rises")
SHOWS = {"part-rises": "seen"}
TRIAL = "fork with the weight of the term that does not fall at ten times"
REMEDY = Remedy(
    "Log every term of the loss, and lower the weight of the one that the others fall against.",
    (),
    "try",
    "no term rises while the total falls",
)
