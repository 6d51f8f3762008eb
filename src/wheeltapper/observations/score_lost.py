"""How much of what the held-out score had won was lost again.

## Definition
(last − best) / (first − best) of the held-out score as an error.

## Derivation
0: it ended at its best. 1: it ended where it began. The last level is a twentieth of the values, so the last rows count.

## Healthy band
Below 0.1.

## When it misleads
A score that wanders (rewards, adversarial training); very few evaluations.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (0.03, 0.1, 0.25, 0.5, 0.9, 1.5)
BAND = (None, 0.1)


def observe(score_curve: Curve) -> Reading | Unknown:
    return lost(score_curve)


def lost(curve: Curve) -> Reading | Unknown:
    """The share of the gain that was lost, beyond what the best of noisy values exceeds their mean by."""
    if len(curve) < 5 or curve.gain <= 0:
        return Unknown("fewer than five values, or none better than the first", ("more evaluations",))
    luck = min(2.0 * curve.noise, 0.5 * abs(curve.last - curve.best))
    value = max(0.0, curve.last - curve.best - luck) / max(curve.gain, curve.noise, 1e-12)
    spot = curve.best_spot
    text = f"{curve.series.name} was {curve.shown(curve.best):.4g} at {curve.series.clock} {curve.at(spot):g} and ended at {curve.shown(curve.last):.4g} (first {curve.shown(curve.first):.4g})"
    return Reading(value, text, series=curve.series.name, clock=curve.series.clock, onset=curve.at(spot))
