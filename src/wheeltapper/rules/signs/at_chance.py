"""The model predicts no better than by chance.

## What it sees
A validation accuracy that stays at one over the number of classes, or a cross-entropy that stays at the
logarithm of the number of classes, to the end of the record.

## Why it matters
Nothing was learned from the inputs, whatever the training loss did.

## How it decides
The number of classes comes from the config, or from the two scores themselves: a loss within 2 % of ln C
together with an accuracy below 2/C can hardly be a coincidence. The end of the record counts (the median
of the last third of the evaluations), so that a slow start is not a finding. Two evaluations are enough
where the training loss stood at ln C on twenty rows and more. A number of classes that only the scores tell is not
believed where the loss falls on, by 2 % of ln C from the second quarter of the evaluations to the last; and where it falls
by 0.5 % and the training loss ends 5 % below ln C the claim is a suspicion. With the accuracy alone, C must be known. Below one epoch, or while the learning rate still warms up, the answer is Unknown.

## When it is wrong
Very many classes and a short record: models on long-tailed or thousand-class data sit near chance for a
while. A class prior that is far from uniform moves the loss below ln C; the accuracy is then the majority
share, which the config does not tell.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- PyTorch, torch.nn.CrossEntropyLoss (unnormalised logits; the mean over ignored targets only is NaN).
- Exact binomial test of k right of n against the larger of 1/C and the majority's share.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.settings.knobs import Knobs

ID = "at-chance"
LIVE = False
TRAINED = 20  # training losses that must agree where there are only two evaluations
NEAR_LOG = 0.02  # of ln C: label smoothing and a slightly uneven prior move an untrained loss less than this


def look(
    val_loss: Series | None = None,
    val_metrics: tuple[Series, ...] = (),
    lr: Series | None = None,
    knobs: Knobs | None = None,
    train_loss: Series | None = None,
) -> Answer:
    accuracy = next((s for s in val_metrics if s.quantity == "accuracy" and not s.part), None)
    loss = val_loss if val_loss is not None and val_loss.quantity == "loss" else None
    if accuracy is None:
        return Unknown("no validation accuracy is logged", ("val/accuracy", "the number of classes"))
    shares = accuracy.values[accuracy.finite] / (100.0 if accuracy.unit == "%" else 1.0)
    if len(shares) < 3 and not (len(shares) == 2 and _trains_at_chance(train_loss, float(shares.max()))):
        return Unknown("fewer than three evaluations", ("more evaluations",))
    told = knobs.value("model.classes") if knobs is not None else None
    known = int(told) if isinstance(told, (int, float)) and 2 <= told < 1e6 else None
    level = float(np.median(_last_third(shares)))
    loss_level = (
        float(np.median(_last_third(loss.values[loss.finite]))) if loss is not None and loss.finite.any() else None
    )
    if known is None and loss is not None and loss_level is not None and not _steady(loss, loss_level):
        loss_level = None  # a loss that wanders through ln C is not at it
    classes, how = _classes(known, level, loss_level)
    if classes is None:
        return Clear(f"accuracy ends at {level:.1%}, which is no chance level that its loss would explain")
    best = float(shares.max())
    if known is None and loss is not None and _met_by_chance(shares, loss, classes):
        return Clear(f"accuracy rose to {level:.1%}, or the loss was below ln {classes} before: the two meet there by chance")
    drift = _drift(loss, classes) if known is None and loss is not None else 0.0
    if drift > NEAR_LOG:
        return Clear(f"the loss falls through ln {classes} ({drift:.1%} of it from the second quarter of the evaluations to the last)")
    # Training has left the level and validation begins to: the start of learning looks like that, and so does a gap.
    leaving = known is None and drift > NEAR_LOG / 4 and _has_left(train_loss, classes)
    # Chance, with room for a data set of a few hundred items and an uneven prior: twice 1/C, or a few points
    # above it where C is small.
    limit = min(2.0 / classes, 1.0 / classes + 0.06)
    if level > limit:
        return Clear(f"accuracy ends at {level:.1%}; chance would be {1 / classes:.1%}")
    if still_warming(lr):
        return Unknown("the learning rate still warms up at the end of the record", ("the run after its warm-up",))
    if len(shares) < 5 and best > limit:
        return Unknown("too few evaluations to say", ("more evaluations",))
    ever = best > 3 * limit
    start = 0
    if ever:  # it had learned, and lost it: from the last time it was clearly above chance
        above = np.flatnonzero(shares > limit)
        start = min(int(above[-1]) + 1, len(shares) - 1)
    index = int(np.flatnonzero(accuracy.finite)[start])
    text = f"{accuracy.name} is {level:.2%}, chance for {how}, " + (
        f"since {where(accuracy, index)} (best before: {best:.1%})" if ever else f"throughout (best {best:.2%})"
    )
    if loss_level is not None and abs(loss_level / math.log(classes) - 1) < 2 * NEAR_LOG:
        text += f"; the loss, {loss_level:.4g}, is ln {classes} as well"
    return seen(
        ID, accuracy, text, severity="ill", grade="suspected" if leaving else "is" if loss_level is not None else "is-p", onset=index,
        level=level, classes=classes, best=best, fell=float(ever),
    )  # fmt: skip


def _last_third(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return x[-max(1, min(len(x) // 3, 30)) :]


def _classes(known: int | None, level: float, loss: float | None) -> tuple[int | None, str]:
    """The number of classes, from the config or from a loss and an accuracy that agree on one."""
    if known is not None:
        return known, f"the {known} classes of the config"
    if loss is None or not 0.5 < loss < 12:
        return None, ""
    guess = round(math.exp(loss))
    # The two scores are independent readings of C: both must point at the same.
    for classes in {guess, guess + 1, guess - 1}:
        if (
            classes >= 2
            and abs(loss / math.log(classes) - 1) < NEAR_LOG
            and level <= min(2.0 / classes, 1 / classes + 0.06)
        ):
            return guess, f"about {guess} classes"
    return None, ""


def _met_by_chance(shares: np.ndarray[tuple[int], np.dtype[np.float64]], loss: Series, classes: int) -> bool:
    """The number of classes is only read off the two scores: an accuracy that has been rising, or a loss that was lower
    while the accuracy never was higher, did not stay at chance nor fall back to it."""
    third = max(1, len(shares) // 3)
    level, early = float(np.median(shares[-third:])), float(np.median(shares[:third]))
    if level > 1.25 * early + 0.01:
        return True
    fell = float(shares.max()) > 2 * level  # it had learned, and lost it
    return not fell and float(np.min(loss.values[loss.finite])) < 0.9 * math.log(classes)


def _drift(loss: Series, classes: int) -> float:
    """How far the validation loss falls from the second quarter of its values to the last, as a share of ln C. What is at
    chance stands still: the public records at chance drift by 0.6 % at most."""
    x = loss.values[loss.finite]
    if len(x) < 4:
        return float(x[0] - x[-1]) / math.log(classes) if len(x) > 1 else 0.0
    quarters = np.array_split(x, 4)
    return float(np.median(quarters[1]) - np.median(quarters[-1])) / math.log(classes)


def _has_left(train: Series | None, classes: int) -> bool:
    """The training loss, of the same kind, ends clearly below ln C."""
    if train is None or train.quantity != "loss" or not train.finite.any():
        return False
    return float(np.median(_last_third(train.values[train.finite]))) < (1 - 2.5 * NEAR_LOG) * math.log(classes)


def _steady(loss: Series, level: float) -> bool:
    ends = _last_third(loss.values[loss.finite])
    return bool(np.median(np.abs(ends - level)) < 2.5 * NEAR_LOG * abs(level))


def _trains_at_chance(train: Series | None, accuracy: float) -> bool:
    """Two evaluations are enough where the training loss stood at ln C all along, and the accuracy is 1/C to a point."""
    if train is None or train.quantity != "loss" or int(train.finite.sum()) < TRAINED:
        return False
    x = train.values[train.finite]
    classes, _ = _classes(None, accuracy, float(np.median(_last_third(x))))
    if classes is None or abs(accuracy - 1 / classes) > 0.01:
        return False
    levels = [float(np.median(part)) for part in np.array_split(x, 8)]
    return all(abs(level / math.log(classes) - 1) < 2.5 * NEAR_LOG for level in levels)


def still_warming(lr: Series | None) -> bool:
    """The learning rate rose to the very end of the record."""
    if lr is None:
        return False
    values = lr.values[lr.finite]
    return len(values) >= 3 and bool(values[-1] >= values.max()) and values[-1] > 1.05 * values[len(values) // 2]


_n = 12
CASES = {
    "three evaluations through ln C": {"val/loss": [5.53, 4.62, 4.198], "val/accuracy": [0.0175, 0.0219, 0.0263], "expect": "clear"},
    "finding": {"val/loss": [1.3915, 1.3913, 1.3914] * 4, "val/accuracy": [0.2409] * _n},
    "clear": {"val/loss": [1.2 - 0.05 * i for i in range(_n)], "val/accuracy": [0.4 + 0.03 * i for i in range(_n)]},
    "near miss": {
        "val/loss": [1.386] * 3 + [1.0 - 0.05 * i for i in range(9)],
        "val/accuracy": [0.25] * 3 + [0.5] * 9,
        "expect": "clear",
    },
    # Forty classes, slowly learned: the loss comes by ln 20 with one in twenty right.
    "falls through": {
        "val/loss": [3.5 - 0.03 * i for i in range(18)],
        "val/accuracy": [0.045 + 0.0005 * i for i in range(18)],
        "expect": "clear",
    },
    "leaving": {
        "train/loss": [0.693, 0.690, 0.683, 0.664, 0.657, 0.641, 0.622],
        "val/loss": [0.6957, 0.6930, 0.6909, 0.6907, 0.6902, 0.6905, 0.6815],
        "val/accuracy": [0.41, 0.49, 0.58, 0.55, 0.57, 0.51, 0.60],
        "clock": "epoch",
        "expect": "finding",
    },
    "two evaluations": {
        "train/loss": [1.12 - 0.002 * (i % 7) for i in range(50)],
        "val/loss": [1.117, 1.107],
        "val/accuracy": [0.33, 0.3315],
        "expect": "ill",
    },
    "unknown": {"train/loss": [2.0, 1.5, 1.2, 1.0, 0.9]},
}
