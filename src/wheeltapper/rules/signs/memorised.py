"""The training set is being learned by heart, and nothing is held out to show otherwise.

## What it sees
A run of many epochs without any evaluation, whose training loss is down to a few percent of its start and
hardly moves any more, with most of the planned run still ahead.

## Why it matters
Once every example has been seen ten times and the loss is near zero, more steps teach the noise. Without
a held-out score nobody can see when it turned.

## How it decides
No validation score at all, ten epochs or more, the level under 5 % of the first one, the second half of
the record brought less than 15 % of the gain in the logarithm of the loss, and at least a third of the
planned run lies ahead. Under ten epochs or with a validation score, other signs judge.

## When it is wrong
A regression whose target has no noise can fall for ever; its log-loss keeps falling and is left alone. A
loss that starts far above the task's own level (a sum, a warm start) makes 5 % easy to reach.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.rules.signs.plateau import knee_of
from wheeltapper.run.model import Series
from wheeltapper.study.progress import Progress

ID = "memorised"
LIVE = False
EPOCHS, LEVEL, SLOW, AHEAD = 10.0, 0.05, 0.15, 1 / 3


def look(
    train_loss: Series,
    progress: Progress,
    val_loss: Series | None = None,
    val_metrics: tuple[Series, ...] = (),
) -> Answer:
    if val_loss is not None or val_metrics:
        return Clear("a score on held-out data is logged")
    epochs = train_loss.on("epoch")
    x = train_loss.values[train_loss.finite]
    if epochs is None or not np.isfinite(epochs).any() or progress.share is None:
        return Unknown("epochs or the planned length are not logged", ("epochs", "total steps"))
    span = float(np.nanmax(epochs) - np.nanmin(epochs))
    if span < EPOCHS or len(x) < 100:
        return Clear(f"{span:.3g} epochs")
    first = float(np.median(x[: max(3, len(x) // 500)]))
    half = float(np.median(x[int(0.45 * len(x)) : int(0.55 * len(x))]))
    last = float(np.median(x[-len(x) // 10 :]))
    if min(first, half, last) <= 0 or last > LEVEL * first or 1 - progress.share < AHEAD:
        return Clear(
            f"the training loss is at {last / first:.1%} of its start" if first > 0 else "the loss is not positive"
        )
    gain = math.log(first / last)
    late = math.log(half / last)
    if late > SLOW * gain:
        return Clear("the training loss still falls at its old pace")
    knee = knee_of(x)
    index = int(np.flatnonzero(train_loss.finite)[min(int(knee * len(x)), len(x) - 1)])
    text = (
        f"{train_loss.name} is at {last:.3g}, {last / first:.1%} of its start, and nearly flat since {where(train_loss, index)}; "
        f"{span:.3g} epochs without any evaluation, {1 - progress.share:.0%} of the planned run still ahead"
    )
    return seen(
        ID, train_loss, text, severity="ill", grade="is-p", onset=index, p=0.05, level=last / first, epochs=span
    )


_loss = [3.5 * 0.9**i + 0.08 - 0.00001 * i for i in range(2000)]
CASES = {
    "finding": {"train/loss": _loss, "steps_per_epoch": 100, "facts": {"total_steps": 20000}},
    "clear": {"train/loss": _loss, "val/loss": _loss, "steps_per_epoch": 100, "facts": {"total_steps": 20000}},
    "near miss": {"train/loss": _loss, "steps_per_epoch": 1000, "facts": {"total_steps": 20000}, "expect": "clear"},
    "unknown": {"train/loss": _loss},
}
