"""How often the model sees each sample.

## Definition
log10 of the epochs of the run.

## Derivation
A sample that is seen hundreds of times can be learned by heart.

## Healthy band
Below 2.5.

## When it misleads
Heavy augmentation makes every view new.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.length import Length

ABOUT = "learning"
SETTING = True
EDGES = (2.5, 3.2)
BAND = (None, 2.5)


def observe(length: Length) -> Reading | Unknown:
    epochs = length.epochs or (length.done / length.per_epoch if length.done and length.per_epoch else None)
    if not epochs:
        return Unknown("the number of epochs is not known", ("epochs",))
    return Reading(math.log10(max(epochs, 1e-3)), f"the run goes {epochs:.3g} times through its data")
