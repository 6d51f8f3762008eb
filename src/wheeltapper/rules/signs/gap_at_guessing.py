"""Training is far along, and held-out data is predicted no better than by guessing.

## What it sees
A validation loss that ends no lower than that of guessing (or of the first evaluation, where the number of classes is
not known), beside a training accuracy at least twice the validation accuracy.

## Why it matters
What is learned does not carry over at all, or the evaluation measures something else than what is trained. Such a
record looks sound to who follows the training loss, and to who follows the best validation accuracy so far.

## How it decides
Over the last fifth of at least ten evaluations: the validation loss is at or above ln C, the training loss below six
tenths of that level, and the validation accuracy less than half of the training accuracy. A classifier that overfits
and is of use keeps more than half; a gap that dropout, mixup or smoothing make goes the other way.

## When it is wrong
A training accuracy on another task than the validation's (few-shot episodes, masked tokens), a validation set of other
classes on purpose.

## References
- Zhang, Bengio, Hardt, Recht and Vinyals 2017, Understanding Deep Learning Requires Rethinking Generalization
  (arXiv:1611.03530): a network fits any labels, and only held-out data tells.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.trivial import Trivial

ID = "gap-at-guessing"
LIVE = False
EVALS, LATE, FITS, HALF = 10, 0.2, 0.6, 0.5
EARLY = 0.15  # of the record: where a first evaluation stands for an untrained network


def look(
    train_loss: Series,
    val_loss: Series,
    train_accuracy: Series,
    val_metrics: tuple[Series, ...] = (),
    trivial_loss: Trivial | None = None,
) -> Answer:
    accuracy = next((s for s in val_metrics if s.quantity == "accuracy" and not s.part), None)
    if accuracy is None or train_accuracy.part or train_accuracy.split != "train":
        return Unknown("no accuracy of both sets is logged", ("train/accuracy and val/accuracy",))
    y, at = val_loss.values[val_loss.finite], val_loss.at[val_loss.finite]
    if train_loss.quantity != val_loss.quantity:
        return Unknown(f"{train_loss.name} and {val_loss.name} do not measure the same")
    if len(y) < EVALS or int(accuracy.finite.sum()) < EVALS:
        return Unknown(f"fewer than {EVALS} finite losses or accuracies of held-out data", ("more evaluations",))
    if trivial_loss is not None:
        guess, words = trivial_loss.loss, "guessing costs"
    elif at[0] <= at[-1] * EARLY:
        guess, words = float(y[0]), "the first evaluation had"
    else:
        return Unknown("the level of guessing is not known", ("the number of classes",))
    late = max(3, int(len(y) * LATE))
    end, fits = float(np.median(y[-late:])), _end(train_loss)
    held, trained = _share(accuracy), _share(train_accuracy)
    if end < guess or fits > FITS * guess or held >= HALF * trained:
        return Clear(f"validation ends at a loss of {end:.4g} and {held:.0%}, training at {fits:.4g} and {trained:.0%}")
    below = np.flatnonzero(y < guess)
    index = int(np.flatnonzero(val_loss.finite)[min(int(below[-1]) + 1, len(y) - 1) if len(below) else 0])
    text = (
        f"{val_loss.name} ends at {end:.4g} where {words} {guess:.4g}, and {accuracy.name} at {held:.0%}, while training has "
        f"a loss of {fits:.4g} and {trained:.0%} right"
    )
    return seen(
        ID, val_loss, f"{text} (since {where(val_loss, index)})", severity="ill", grade="is", onset=index,
        held=held, trained=trained, guess=guess,
    )  # fmt: skip


def _end(series: Series) -> float:
    x = series.values[series.finite]
    return float(np.median(x[-max(3, int(len(x) * LATE)) :]))


def _share(series: Series) -> float:
    return _end(series) / (100.0 if series.unit == "%" else 1.0)


_down = [0.1 + 2.2 * 0.9**i for i in range(40)]
_right = [1.0 - 0.9 * 0.9**i for i in range(40)]
_poor = [0.1 + 0.01 * min(i, 20) for i in range(40)]
CASES = {
    "finding": {
        "train/loss": _down, "train/accuracy": _right, "val/loss": [2.3 + 0.03 * i for i in range(40)],
        "val/accuracy": _poor, "config": "num_classes: 10\n", "clock": "epoch",
    },
    "no classes known": {
        "train/loss": _down, "train/accuracy": _right, "val/loss": [2.3 + 0.03 * i for i in range(40)],
        "val/accuracy": _poor, "clock": "epoch", "expect": "ill",
    },
    "clear": {
        "train/loss": _down, "train/accuracy": _right, "val/loss": [x + 0.2 for x in _down],
        "val/accuracy": [0.9 * x for x in _right], "clock": "epoch",
    },
    "near miss": {  # over-confident, and of use
        "train/loss": _down, "train/accuracy": _right, "val/loss": [2.3 + 0.03 * i for i in range(40)],
        "val/accuracy": [0.7 * x for x in _right], "clock": "epoch", "expect": "clear",
    },
    "unknown": {"train/loss": [2.0, 1.5, 1.2, 1.0, 0.9]},
}  # fmt: skip
