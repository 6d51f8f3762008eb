"""A loss that falls while the score stays where it was.

## Definition
The share of the training loss that was won since the first evaluation, minus the share of the score's error that was won in the
same time.

## Derivation
Both measure the same skill on two scales, so they move together. A loss that melts away beside a score that stands means that the
loss does not ask for what is scored (labels left out, another target), or that the score is not of this model or
these data.

## Healthy band
Below 0.5.

## When it misleads
Learning by heart; scores near their ceiling at the first evaluation (left out); very small losses.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import RATIO, Curve

ABOUT = "evaluation"
EDGES = (0.5, 0.75)
BAND = (None, 0.5)
BOUNDED = ("accuracy", "iou", "dice", "f1", "map", "cer", "wer", "top5", "correlation", "success")
CEILING = 0.15  # of the error: what is left may be doubt in the labels


def observe(steady_curve: Curve, score_curve: Curve) -> Reading | Unknown:
    loss, score = steady_curve, score_curve
    if score.series.quantity not in BOUNDED or loss.scale != RATIO or score.scale != RATIO or len(score) < 4:
        return Unknown("no loss with a zero beside a score with a best value", ("a training loss and a held-out score",))
    start, first = loss.level(float(score.share[0])), score.first
    if first < CEILING or start <= 0 or score.share[0] > 0.5:
        return Unknown("the first evaluation was late or near the best possible", ("an early evaluation",))
    value = (1.0 - loss.last / start) - (1.0 - score.best / first)
    text = f"while {loss.series.name} went from {start:.3g} to {loss.last:.3g}, {score.series.name} went from {score.shown(first):.3g} to {score.shown(score.best):.3g} at best"
    return Reading(value, text, series=score.series.name, clock=score.series.clock)
