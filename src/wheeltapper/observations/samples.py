"""How many samples the model is trained on.

## Definition
log10 of the number of training samples.

## Derivation
A network of any size learns a few hundred samples by heart.

## Healthy band
Above 2.8 (about 600).

## When it misleads
Fine-tuning on small sets on purpose; samples that are long texts. Neither tuned models nor answers for every pixel are counted. Nodes of a graph are not counted: their
neighbours are seen with them.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.run.model import Run
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (2.2, 2.8)
BAND = (2.8, None)
DENSE = ("iou", "dice", "psnr")


def observe(run: Run, knobs: Knobs, from_scratch: bool) -> Reading | Unknown:
    if any("node" in leaf.dotted.lower() or "graph" in str(leaf.value).lower() for t in run.configs for leaf in t.leaves):
        return Unknown("the samples are nodes of one graph: it is seen whole")
    if not from_scratch or any(s.quantity in DENSE for s in run.series.values()):
        return Unknown("a trained model is tuned, or every sample holds many answers (pixels)")
    told = run.facts.get("n_train")
    size = number(knobs.value("data.train_size"))
    size = number(told.value) if size is None and told is not None else size
    if size is None or size < 1:
        return Unknown("the number of training samples is not known", ("the number of training samples",))
    return Reading(math.log10(size), f"there are {size:g} training samples", places=() if knobs.value("data.train_size") is None else (knobs.place("data.train_size"),))
