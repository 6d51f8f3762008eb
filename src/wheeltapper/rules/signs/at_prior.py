"""The loss stands at the level of a model that ignores its input.

## What it sees
A loss that is, from the beginning to the end of the record, the logarithm of the number of classes or tokens;
or a validation loss that is the entropy of a prior which the accuracy gives away.

## Why it matters
The model predicts how frequent the classes are, and nothing else: no input reaches the output, or no gradient
reaches the weights.

## How it decides
Arithmetic with the C of the settings: the median of each third of the record within 1 % of ln C (an untrained
network's loss differs from ln C by its logits, about that much). At least 1000 updates or one epoch after the
warm-up; ill from 3 epochs or 5000 updates on, before that a watch, since models with many classes stay there
for a while, and a watch where the accuracy on held-out data says the same (at-chance). Without C: an
accuracy a that moves by less than half a point over five evaluations, and a loss within 1 % of the entropy of
(a, 1 - a) throughout, is a binary model at its prior: a watch.

## When it is wrong
A loss with a regulariser or smoothing that happens to stand there; runs whose start is long and flat by
nature.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- Stanford CS231n notes, neural-networks-3 (cs231n.github.io).
- The entropy of the class frequencies, -sum p ln p, is the loss of a model that ignores its input.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.rules.signs import at_chance, seen
from wheeltapper.rules.signs.at_chance import still_warming
from wheeltapper.run.model import Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.trivial import Trivial

ID = "at-prior"
LIVE = True
NEAR, ROWS = 0.01, 9
UPDATES, LONG_UPDATES, LONG_EPOCHS = 1000, 5000, 3


def look(
    train_loss: Series | None = None,
    val_loss: Series | None = None,
    val_metrics: tuple[Series, ...] = (),
    trivial_loss: Trivial | None = None,
    lr: Series | None = None,
    knobs: Knobs | None = None,
) -> Answer:
    if train_loss is not None and trivial_loss is not None:
        told = isinstance(at_chance.look(val_loss, val_metrics, lr, knobs), Finding)
        return _against(train_loss, trivial_loss, lr, told)
    accuracy = next((s for s in val_metrics if s.quantity == "accuracy" and not s.part), None)
    if accuracy is None or val_loss is None:
        return Unknown("the level of a model that ignores its input is not known", ("the number of classes",))
    return _binary(val_loss, accuracy)


def _against(loss: Series, trivial: Trivial, lr: Series | None, told: bool) -> Answer:
    x = loss.values[loss.finite]
    if len(x) < ROWS:
        return Unknown("too few training losses", ("a longer record",))
    levels = [float(np.median(part)) for part in np.array_split(x, 3)]
    if max(abs(level / trivial.loss - 1) for level in levels) > NEAR:
        return Clear(f"the loss ends at {levels[-1]:.4g}; a model that ignores its input has {trivial.loss:.4g}")
    epochs = span(loss, "epoch")
    updates = span(loss, "step")
    if still_warming(lr) or (epochs < 1 and updates < UPDATES):
        return Unknown("too early to say: the loss of an untrained model, so far", ("the run after its warm-up",))
    long = epochs >= LONG_EPOCHS or updates >= LONG_UPDATES
    text = f"{loss.name} stands at {levels[-1]:.4g} throughout: a model that ignores its input has {trivial.loss:.4g} ({trivial.words})"
    return seen(
        ID, loss, text, severity="ill" if long and not told else "watch", grade="is" if long else "suspected", onset=0,
        level=levels[-1], trivial=trivial.loss,
    )  # fmt: skip


def span(series: Series, clock: str) -> float:
    at = series.on(clock)  # type: ignore[arg-type]
    return float(np.nanmax(at) - np.nanmin(at)) if at is not None and np.isfinite(at).any() else 0.0


def _binary(loss: Series, accuracy: Series) -> Answer:
    a = accuracy.values[accuracy.finite] / (100.0 if accuracy.unit == "%" else 1.0)
    x = loss.values[loss.finite]
    if len(a) < 5 or len(x) < 5 or loss.quantity != "loss":
        return Unknown("fewer than five finite losses and accuracies of held-out data", ("more evaluations",))
    level = float(np.median(a))
    if np.ptp(a) > 0.005 or not 0.02 < level < 0.98:
        return Clear(f"accuracy moves between {a.min():.1%} and {a.max():.1%}")
    entropy = -level * math.log(level) - (1 - level) * math.log(1 - level)
    if np.abs(x / entropy - 1).max() > NEAR:
        return Clear(f"the loss, {x[-1]:.4g}, is not the entropy of its accuracy ({entropy:.4g})")
    text = f"{accuracy.name} stands at {level:.1%} and {loss.name} at {x[-1]:.4g}, the entropy of that share: only the class frequencies were learned"
    return seen(ID, loss, text, severity="watch", grade="suspected", onset=0, level=float(x[-1]), trivial=entropy)


_C = "num_classes: 10\nlr: 0.1\nepochs: 20\n"
_flat = [2.3026 + 0.004 * ((i * 7) % 5 - 2) for i in range(200)]
CASES = {
    "finding": {"train/loss": _flat, "config": _C, "spacing": 50},
    "clear": {"train/loss": [2.3 * 0.99**i for i in range(200)], "config": _C, "spacing": 50},
    "binary": {"val/loss": [0.6110, 0.6109, 0.6108, 0.6111, 0.6109], "val/accuracy": [0.7] * 5, "expect": "watch"},
    "early": {"train/loss": _flat, "config": _C, "expect": "unknown"},
    "unknown": {"train/loss": [2.0, 1.9]},
}
