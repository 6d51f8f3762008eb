"""A training loss above the held-out one, where nothing makes training harder.

## Definition
log2 of the held-out over the training loss at the end, where neither dropout nor smoothing nor mixing is on and the loss has no
further parts.

## Derivation
The same model on data of the same kind: what it was trained on can only be known better. A training loss that stays above
says that the training targets are worse than the held-out ones: shuffled, noisy, misaligned.

## Healthy band
Above −0.25.

## When it misleads
Augmentation that the settings do not show; training losses that are averages over a long epoch of fast learning.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.observations.gap_at_end import gap
from wheeltapper.run.model import Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (-0.7, -0.25)
BAND = (-0.25, None)
HARDER = ("augment.dropout", "augment.drop_path", "loss.label_smoothing", "augment.mixup", "augment.cutmix", "augment.mixup_prob")


def observe(
    knobs: Knobs, train_curve: Curve, val_curve: Curve, loss_parts: tuple[Series, ...] | None = None
) -> Reading | Unknown:
    if loss_parts is not None or any((number(knobs.value(knob)) or 0.0) > 0 for knob in HARDER):
        return Unknown("dropout, smoothing, mixing or further parts make training harder")
    if len(val_curve) < 4 or knobs.get("augment.dropout") is None:
        return Unknown("fewer than four evaluations, or nothing is known of dropout", ("dropout",))
    early = gap(train_curve, val_curve, 0)
    if isinstance(early, Reading) and early.value < BAND[0]:
        return Unknown("the training loss stood above the held-out one from the start: other data or another unit")
    return gap(train_curve, val_curve, -1)
