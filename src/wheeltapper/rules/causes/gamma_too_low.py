"""The discount makes the agent blind to all but the next rewards.

## What happens
A discount of 0.5 halves a reward with every step: one that comes twenty steps later counts a millionth. The agent
optimises what lies at its feet.

## How it shows
The value function fits its targets quickly and well, and the return of long episodes does not rise.

## What else looks like this
Exploration that ended too early; a reward that is too rare at any discount.

## When this is wrong
Episodes are a few steps long, or every step is rewarded for itself.

## Fix
A discount of 0.99, so that 1 / (1 − gamma) is about the length that matters.

## Trial
A short run at 0.99 with the same seed: the return must rise where it stood.

## References
- Sutton and Barto 2018, Reinforcement Learning: An Introduction, section 3.3.
- Schulman et al. 2016, High-Dimensional Continuous Control Using Generalized Advantage Estimation (arXiv:1506.02438).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "gamma-too-low"
AREA = "reinforcement"
ABOUT = "learning"
EXPLAINS = ("return-never-rose", "plateau", "collapsed", "barely-learned")
SHOWS = {"return-never-rose": "seen", "value-explained": "in", "beyond-practice": "high"}
PROVED_BY = ("discount-extreme",)
TRIAL = "a short run at a discount of 0.99 with the same seed"
USUAL = 0.99


def remedies(case: Case) -> tuple[Remedy, ...]:
    now = case.knob("rl.gamma")
    low = isinstance(now, (int, float)) and now < USUAL
    edits = (Edit("rl.gamma", now, USUAL, "rewards of the next hundred steps count"),) if low else ()
    return (Remedy("Raise the discount to 0.99.", edits, "try", "the return of whole episodes rises"),)
