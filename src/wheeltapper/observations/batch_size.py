"""Samples of one batch on one device.

## Definition
log2 of the samples per device and step.

## Derivation
Batch normalisation takes its statistics from this many samples (times pixels); of one or two they say nothing. Contrastive losses
take their negatives from them.

## Healthy band
Above 1.5 (three and more).

## When it misleads
Networks without batch statistics; large pictures.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (1.5,)
BAND = (1.5, None)


def observe(knobs: Knobs) -> Reading | Unknown:
    batch = number(knobs.value("batch.per_device")) or number(knobs.value("batch.global"))
    if batch is None or batch < 1:
        return Unknown("the batch size is not known", ("batch size",))
    return Reading(math.log2(batch), f"a batch has {batch:g} samples", places=(knobs.place("batch.per_device"),))
