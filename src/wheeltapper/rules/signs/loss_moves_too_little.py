"""The accuracy rises as it should, and the loss falls by less than that allows.

## What it sees
A cross-entropy and an accuracy of the same items, where the loss gives back no more than a nat for each whole of
accuracy, and never falls below what a softmax of a softmax can reach.

## Why it matters
Cross-entropy takes a logarithm of a softmax. Where the model ends in a softmax of its own, the loss sees probabilities between 0 and 1 in place of scores:
it cannot fall below ln(e + C - 1) - 1 for C classes, its gradient vanishes where the network is sure, and training is slow and stops early.
Accuracy rises meanwhile, so the run seems to learn, only badly.

## How it decides
With p the model's own softmax the loss is ln(sum of e^p) - p of the label: at most one nat lower for a whole of accuracy, whatever the
scores. An ordinary cross-entropy falls by 1.2 to 2.6 nats (10 classes, label smoothing up to 0.3). Found: a straight line through loss
against accuracy (a span of 0.3 at least, eight values) falls by 1.05 at most, fits within 0.05 nats, and no value lies below the floor.
Only with eight classes and more: with few of them an ordinary loss moves as little. Label smoothing from 0.3 on and mixed labels move the loss as
little by design: not judged.

## When it is wrong
Losses that are no cross-entropy but are called so; labels smoothed or mixed without a word in the settings; an accuracy of other items than the loss.

## References
- PyTorch, torch.nn.CrossEntropyLoss (unnormalised logits).
- discuss.pytorch.org and stackoverflow.com, many threads: "loss stuck at 1.461" (ten classes).
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Series
from wheeltapper.settings.knobs import Knobs

ID = "loss-moves-too-little"
LIVE = False
CLASSES, SPAN, ROWS = 8, 0.3, 8
SLOPE = 1.05  # nats for a whole of accuracy: at most 1 with a softmax twice; 1.2 to 2.6 in 130 healthy and odd runs of the lab (LOG.md)
FITS = 0.05
SMOOTHING = 0.3


def look(train_loss: Series, train_accuracy: Series, knobs: Knobs) -> Answer:
    classes = knobs.value("model.classes")
    if not isinstance(classes, (int, float)) or classes < CLASSES:
        return Unknown("the number of classes is not known, or there are few of them", ("the number of classes",))
    smoothing, mixed = knobs.value("loss.label_smoothing"), knobs.value("augment.mixup") or knobs.value("augment.cutmix")
    if (isinstance(smoothing, (int, float)) and smoothing >= SMOOTHING) or mixed:
        return Unknown("labels are smoothed or mixed, which moves the loss as little")
    if train_accuracy.split != "train" or train_accuracy.part or train_loss.quantity != "loss":
        return Unknown("no accuracy of the training items is logged beside their loss", ("train/accuracy",))
    pairs = _pairs(train_loss, train_accuracy)
    if pairs is None or len(pairs[0]) < ROWS or float(np.ptp(pairs[0])) < SPAN:
        return Unknown("too few values of both, or an accuracy that hardly moves", ("more epochs",))
    shares, losses = pairs
    floor = math.log(math.e + classes - 1) - 1
    slope, start = np.polyfit(shares, losses, 1)
    spread = float(np.std(losses - slope * shares - start))
    if float(losses.min()) < 0.99 * floor or -slope >= SLOPE or slope >= 0 or spread > FITS:
        return Clear(f"the loss falls by {-slope:.2g} for a whole of accuracy, to {losses.min():.4g}")
    text = (
        f"{train_loss.name} falls by only {-slope:.2g} for a whole of accuracy ({losses[0]:.4g} to {losses.min():.4g} while "
        f"{train_accuracy.name} goes from {shares[0]:.0%} to {shares.max():.0%}); a softmax taken twice over {classes:g} classes cannot go below {floor:.4g}"
    )
    return seen(ID, train_loss, text, severity="ill", grade="is", onset=0, slope=-float(slope), floor=floor)


def _pairs(loss: Series, accuracy: Series) -> tuple[np.ndarray, np.ndarray] | None:
    """Accuracy as a share, and the loss of the same rows."""
    at = accuracy.on(loss.clock)
    if at is None:
        return None
    _, i, j = np.intersect1d(at, loss.at, return_indices=True)
    x, y = accuracy.values[i] / (100.0 if accuracy.unit == "%" else 1.0), loss.values[j]
    good = np.isfinite(x) & np.isfinite(y)
    return x[good], y[good]


_RISE = [0.1 + 0.6 * (1 - 0.8**i) for i in range(20)]
CASES = {
    "finding": {"train/loss": [2.461 - 0.9 * a for a in _RISE], "train/accuracy": _RISE, "config": "num_classes: 10\n", "expect": "ill"},
    "clear": {"train/loss": [2.5 - 2.1 * a for a in _RISE], "train/accuracy": _RISE, "config": "num_classes: 10\n"},
    "smoothed labels": {
        "train/loss": [2.461 - 0.9 * a for a in _RISE],
        "train/accuracy": _RISE,
        "config": "num_classes: 10\nlabel_smoothing: 0.5\n",
        "expect": "unknown",
    },
    "unknown": {"train/loss": [2.461 - 0.9 * a for a in _RISE], "train/accuracy": _RISE},
}
