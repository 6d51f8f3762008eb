"""A held-out loss near zero early in the run.

## Definition
−log10 of the held-out loss at a quarter of the run over the loss of an untrained model, for losses over answers (classes, tokens,
pairs).

## Derivation
Answers carry doubt: text has its entropy, pictures look alike, labels err. Models come near it slowly. A held-out loss of a
fiftieth of guessing and less after a quarter of the run was not foretold but read: the answer is in the input, or the
objective has a trivial solution.

## Healthy band
Below 1.7.

## When it misleads
Toy tasks without any doubt; pretrained models.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run
from wheeltapper.study.levels import ENTROPIES, Choices, Level
from wheeltapper.study.outcome import Curve

ABOUT = "evaluation"
EDGES = (1.0, 1.7)
BAND = (None, 1.7)
WHEN = 0.25
ANSWERS = ("accuracy", "perplexity", "top5", "embedding_std")


def observe(run: Run, val_curve: Curve, trivial_train: Level, choices: Choices | None = None) -> Reading | Unknown:
    answers = choices is not None or any(s.quantity in ANSWERS for s in run.series.values())
    if not answers or val_curve.series.quantity not in ENTROPIES or val_curve.scale != "ratio" or trivial_train.error <= 0:
        return Unknown("no held-out loss over answers is logged", ("val/loss of a classifier or a language model",))
    level = val_curve.level(WHEN)
    text = f"after a quarter of the run {val_curve.series.name} is {level:.3g}; having learned nothing gives {trivial_train.error:.3g}"
    return Reading(-math.log10(max(level / trivial_train.error, 1e-6)), text, series=val_curve.series.name)
