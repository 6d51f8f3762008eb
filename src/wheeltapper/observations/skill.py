"""What was learned, against a model that learned nothing.

## Definition
1 − error / trivial error at the best stretch of the held-out score (else the held-out loss). The trivial error is that of
guessing: 1 − 1/C for an accuracy, ln C for a cross-entropy, the first value of the record otherwise.

## Derivation
An error that equals that of guessing means that nothing was learned, in every task and unit; 1 would be perfect.

## Healthy band
Above 0.15. Runs that end below it have hardly beaten a guess.

## When it misleads
Hard tasks with thousands of classes and short records; a first evaluation that came late, when much was learned already.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.levels import Level, skill
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
GROUP = "improvement"
NEEDED = True
EDGES = (0.02, 0.06, 0.15, 0.35, 0.7, 0.95)
BAND = (0.15, None)


def observe(held_out: Curve, trivial_held: Level) -> Reading | Unknown:
    if trivial_held.error <= 0:
        return Unknown("the score has no zero, so a share of it means nothing", ("a score with a known best",))
    value, sigma = skill(held_out, trivial_held)
    name = held_out.series.name
    text = f"{name} reached {held_out.shown(held_out.best):.4g}; having learned nothing gives {held_out.shown(trivial_held.error):.4g} ({trivial_held.how})"
    return Reading(value, text, sigma, name, held_out.series.clock)
