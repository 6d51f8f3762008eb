"""What the loss says of the score: skill of the loss minus skill of the accuracy.

## Definition
(1 − held-out loss / ln C) − (accuracy − 1/C) / (1 − 1/C), at the end.

## Derivation
A cross-entropy of calibrated answers falls with the accuracy. A loss that hardly leaves ln C while the accuracy climbs is
squeezed (a softmax taken twice, a temperature); one far above ln C beside a fair accuracy is over-confident, or scaled.

## Healthy band
−0.35 to 0.35.

## When it misleads
Label smoothing, mixup, losses with other terms.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.levels import Choices
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (-1.0, -0.35, -0.15, 0.15, 0.35)
BAND = (-0.35, 0.35)


def observe(
    val_curve: Curve, score_curve: Curve, choices: Choices, train_curve: Curve | None = None
) -> Reading | Unknown:
    if (
        score_curve.series.quantity != "accuracy"
        or val_curve.series.quantity not in ("loss", "nll")
        or choices.count < 2
    ):
        return Unknown(
            "a cross-entropy and an accuracy of the same data are not both logged", ("val/loss and val/accuracy",)
        )
    # The loss must be one over these very answers: it begins near ln C. That of pairs does not, nor is a neighbours' score its.
    start = val_curve.first if train_curve is None else train_curve.first
    if "knn" in score_curve.series.raw.lower() or not choices.sure or not 0.3 <= start / math.log(choices.count) <= 1.6:
        return Unknown("the loss is not a cross-entropy over the classes of the score", ("a cross-entropy",))
    chance = 1.0 / choices.count
    of_score = (1.0 - score_curve.last - chance) / (1.0 - chance)
    of_loss = 1.0 - val_curve.last / math.log(choices.count)
    text = f"{val_curve.series.name} ends at {val_curve.last:.4g} (ln C is {math.log(choices.count):.3g}) beside an accuracy of {1 - score_curve.last:.3g}"
    return Reading(of_loss - of_score, text, series=val_curve.series.name, clock=val_curve.series.clock)
