"""After long training the loss is still worse than that of a model that predicts nothing.

## What it sees
A training loss that ends above the trivial level of its objective, where that level is known: 1 for a
diffusion model that predicts noise (logs with loss_q0..q3 or a diffusion config), ln C for a classifier.

## Why it matters
Not reaching the trivial level means that almost nothing was learned: the step is far too small, or the
objective is not what it seems.

## How it decides
The median of the last tenth against 1.5 times the trivial level, after at least 1000 steps. The trivial
level of noise prediction is 1.0 because both noise and target have unit variance.

## When it is wrong
A weighted or summed objective (SEDD and EDM2 have other scales); such configs are not judged here.

## References
- NVlabs/edm, training/loss.py.
- louaaron/Score-Entropy-Discrete-Diffusion, losses.py, graph_lib.py and noise_lib.py.
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Run, Series

ID = "worse-than-trivial"
LIVE = True
DECIDES = True
FACTOR = 1.5
STEPS = 1000


def look(run: Run, train_loss: Series) -> Answer:
    raws = {s.raw for s in run.series.values()}
    if not {"loss_q0", "loss_q3"} <= raws:
        return Unknown("the objective's trivial level is not known", ("the objective",))
    values = train_loss.values[train_loss.finite]
    if len(values) < 10 or float(train_loss.at[-1]) < STEPS:
        return Unknown("too short to say", ("at least 1000 steps",))
    level = float(np.median(values[-max(5, len(values) // 10) :]))
    if level <= FACTOR:
        return Clear(f"the loss ends at {level:.3g}; predicting no noise gives 1.0")
    first = float(np.median(values[: max(3, len(values) // 50)]))
    text = (
        f"{train_loss.name} ends at {level:.4g} after {train_loss.at[-1]:,.0f} {train_loss.clock}s (it began at {first:.4g}); "
        "predicting no noise at all would give 1.0"
    )
    return seen(ID, train_loss, text, severity="ill", grade="is", onset=0, level=level, trivial=1.0, first=first)


_q = {"loss_q0": [30.0] * 20, "loss_q3": [12.0] * 20}
CASES = {
    "finding": {"train/loss": [15.9 - 0.2 * i for i in range(20)], **_q, "spacing": 500},
    "clear": {"train/loss": [2.0, 1.0, 0.7, *[0.5] * 17], **_q, "spacing": 500},
    "near miss": {"train/loss": [15.0 - 0.1 * i for i in range(20)], **_q, "spacing": 10, "expect": "unknown"},
    "unknown": {"train/loss": [2.0, 1.5, 1.2, 1.0, 0.9]},
}
