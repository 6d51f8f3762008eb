"""The number that training of this kind is watched by, against its known band.

## Definition
How far the worst of them lies beyond its band, in steps that each are plain trouble: the KL of a variational model below half
a nat (a step is a factor of ten); a discriminator's loss below a sixth of a draw (a factor of six), or
D(G(z)) below 0.01 (a factor of ten); preferences below
55 % (15 points); a forecast no better than the naive one, MASE above 1 (0.2); pictures below 20 dB (3 dB); an explained variance
or R2 below 0.1 (0.3); an area under the curve or a concordance below 0.55 (0.05), a Matthews correlation below 0.05 (0.1); characters or words wrong above 0.9 (0.05); embeddings
that shrank to a fifth (a factor of five); a policy's entropy down to a hundredth (a factor of ten); a return that rose by less than half of its
first level (half). 0 inside.

## Derivation
Each is a level that follows from what the number means, not from one data set; see `kl-level`, `discriminator-level`,
`preference-accuracy`, `value-explained`, `spread-of-embeddings`, `entropy-change`, `return-gain`. Taken together they speak for
kinds of training of which few runs were seen.

## Healthy band
Below 0.3.

## When it misleads
Numbers in other units than usual (KL per pixel); records that stop early.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import (
    Reading,
    discriminator_level,
    entropy_change,
    kl_level,
    preference_accuracy,
    return_gain,
    spread_of_embeddings,
    value_explained,
)
from wheeltapper.run.model import Run
from wheeltapper.study.curves import Task
from wheeltapper.study.outcome import Curve

ABOUT = "learning"
EDGES = (0.3, 1.0, 2.5)
BAND = (None, 0.3)
# Of a held-out score: the edge of its band, the size of a step, and which side is trouble.
SCORES = {
    "mase": (1.0, 0.2, 1.0),
    "psnr": (20.0, 3.0, -1.0),
    "correlation": (0.1, 0.3, -1.0),
    "auc": (0.55, 0.05, -1.0),
    "concordance": (0.55, 0.05, -1.0),
    "mcc": (0.05, 0.1, -1.0),
    "cer": (0.9, 0.05, 1.0),
    "wer": (0.9, 0.05, 1.0),
}


def observe(run: Run, task: Task, score_curve: Curve | None = None) -> Reading | Unknown:
    found = [*_of_kind(run, task), *_of_scores(run), *_of_judged_samples(run)]
    if score_curve is not None and isinstance(reading := return_gain.observe(score_curve), Reading):
        found.append((max(0.0, (0.5 - reading.value) / 0.5), reading))
    if not found:
        return Unknown("no number that this kind of training is watched by is logged", ("KL, D(x), entropy, ...",))
    value, reading = max(found, key=lambda pair: pair[0])
    return Reading(value, reading.text, series=reading.series, clock=reading.clock)


def _of_kind(run: Run, task: Task) -> Iterator[tuple[float, Reading]]:
    asked = (
        (kl_level.observe(run, task), -0.3, 1.0),
        (discriminator_level.observe(run), -2.5, 2.5),
        (preference_accuracy.observe(run), 0.55, 0.15),
        (value_explained.observe(run), 0.1, 0.3),
        (spread_of_embeddings.observe(run), -0.7, 0.7),
        (entropy_change.observe(run, task), -6.6, 3.3),
    )
    for reading, edge, step in asked:
        if isinstance(reading, Reading):
            yield max(0.0, (edge - reading.value) / step), reading


def _of_judged_samples(run: Run) -> Iterator[tuple[float, Reading]]:
    """How real the discriminator holds what was made, where it is logged as a probability: below 1 in 100 it has won."""
    for s in run.series.values():
        x = s.values[s.finite] if s.quantity == "gan_fake" else np.empty(0)
        if len(x) >= 5 and float(x.min()) >= 0 and float(x.max()) <= 1 and float(np.median(x[:5])) > 0.02:
            level = float(np.median(x[-max(3, len(x) // 5) :]))
            text = f"{s.name} ends at {level:.3g}: what is made is always told from what is real"
            yield max(0.0, -2.0 - math.log10(max(level, 1e-9))), Reading(level, text, series=s.name, clock=s.clock)


def _of_scores(run: Run) -> Iterator[tuple[float, Reading]]:
    for s in run.series.values():
        if s.quantity not in SCORES or s.split == "train" or int(s.finite.sum()) < 3:
            continue
        edge, step, side = SCORES[s.quantity]
        x = s.values[s.finite] / (100.0 if s.unit == "%" else 1.0)
        level = float(np.median(x[-max(1, len(x) // 10) :]))
        if math.isfinite(level):
            text = f"{s.name} ends at {level:.4g}; {edge:g} is what little skill gives"
            yield max(0.0, side * (level - edge) / step), Reading(level, text, series=s.name, clock=s.clock)
