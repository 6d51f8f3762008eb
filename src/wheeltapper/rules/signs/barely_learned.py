"""The run is over, and the model is hardly better than one that ignores its input.

## What it sees
A classifier or language model whose training loss, at the end of the planned run, is still within 15 % of
the level of guessing, with an accuracy that is low as well.

## Why it matters
A curve that falls a little looks like learning. Measured against what guessing gives, nearly nothing was
learned, and the budget is spent.

## How it decides
The skill of the training loss, 1 - loss / ln C, is under 15 % over the last tenth of a record that reached 95 % of its
planned length, and no accuracy (training or validation) exceeds three times chance or chance plus 20 points. The number of
classes must be in the config. Labelled healthy classifiers end with a skill above 50 %. Where no accuracy is logged (tokens,
diffusion), the skill of the training loss and of the validation loss must both be under 12 %; a run shorter than 3 epochs
and 5000 updates is then a watch only, and one that is still warming up is not judged.

## When it is wrong
Objectives whose floor is high (strong mixup, label smoothing with few classes): the accuracy then is high,
which clears it.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- The skill of a loss: (trivial - loss) / (trivial - floor), with the floor of label smoothing.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, share
from wheeltapper.rules.signs.at_chance import still_warming
from wheeltapper.rules.signs.at_prior import LONG_EPOCHS, LONG_UPDATES, span
from wheeltapper.run.model import Series
from wheeltapper.study.progress import Progress
from wheeltapper.study.trivial import Trivial

ID = "barely-learned"
LIVE = False
ROWS = 6
SKILL, DONE, ALONE = 0.15, 0.95, 0.12


def look(
    train_loss: Series,
    trivial_loss: Trivial,
    progress: Progress,
    train_accuracy: Series | None = None,
    val_metrics: tuple[Series, ...] = (),
    val_loss: Series | None = None,
    lr: Series | None = None,
) -> Answer:
    if progress.share is None or progress.share < DONE:
        return Unknown("the run is not over, or its planned length is not known", ("the rest of the run",))
    x = train_loss.values[train_loss.finite]
    scores = [
        s
        for s in (train_accuracy, *(m for m in val_metrics if m.quantity == "accuracy"))
        if s is not None and s.finite.any()
    ]
    if len(x) < ROWS:
        return Unknown("too few losses", ("a longer record",))
    level = float(np.median(x[-max(3, len(x) // 10) :]))
    skill = 1 - level / trivial_loss.loss
    if not scores:
        return _by_losses(train_loss, val_loss, trivial_loss, level, skill, lr)
    chance = float(np.exp(-trivial_loss.loss))
    best = max(float(np.nanmax(s.values)) / (100.0 if s.unit == "%" else 1.0) for s in scores)
    if skill >= SKILL or best > min(max(3 * chance, 0.02), chance + 0.20):
        return Clear(f"the training loss ends at a skill of {skill:.0%}, the best accuracy is {best:.1%}")
    text = (
        f"{train_loss.name} ends at {level:.4g} where guessing gives {trivial_loss.loss:.4g} ({share(skill)} better), and no accuracy "
        f"exceeds {best:.1%} (chance {chance:.1%}): the run is over and hardly anything was learned"
    )
    return seen(ID, train_loss, text, severity="ill", grade="is", onset=0, skill=skill, best=best)


def _by_losses(
    train: Series, val: Series | None, trivial: Trivial, level: float, skill: float, lr: Series | None
) -> Answer:
    if still_warming(lr):
        return Unknown("the learning rate still warms up at the end of the record", ("the run after its warm-up",))
    levels = [skill]
    if val is not None and val.quantity == train.quantity and int(val.finite.sum()) >= 3:
        levels.append(1 - float(np.min(val.values[val.finite])) / trivial.loss)
    if max(levels) >= ALONE:
        return Clear(f"the loss ends {max(levels):.0%} below that of an untrained model")
    best = f"at best {share(max(levels))} below that" if max(levels) > 0 else "never below that"
    text = (
        f"{train.name} ends at {level:.4g} where an untrained model has {trivial.loss:.4g} ({trivial.words}): the run is "
        f"over and hardly anything was learned ({best})"
    )
    long = span(train, "epoch") >= LONG_EPOCHS or span(train, "step") >= LONG_UPDATES
    return seen(
        ID, train, text, severity="ill" if long else "watch", grade="is" if long else "suspected", onset=0,
        skill=max(levels), best=0.0,
    )  # fmt: skip


_CLASSES = "num_classes: 10\nbatch_size: 64\nepochs: 36\n"
CASES = {
    "finding": {
        "train/loss": [2.34 - 0.003 * i for i in range(36)], "val/accuracy": [0.1 + 0.002 * i for i in range(36)],
        "clock": "epoch", "config": _CLASSES,
    },
    "clear": {
        "train/loss": [2.34 * 0.95**i for i in range(36)], "val/accuracy": [0.1 + 0.02 * i for i in range(36)],
        "clock": "epoch", "config": _CLASSES,
    },
    "unknown": {"train/loss": [2.3, 2.2, 2.1]},
}  # fmt: skip
