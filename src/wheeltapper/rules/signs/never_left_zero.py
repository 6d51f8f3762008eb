"""The validation metric never left zero while the training loss fell.

## What it sees
A score between 0 and 1 (mAP, IoU, BLEU, accuracy far below any chance level) that stays at about zero to
the end, though the training loss fell normally.

## Why it matters
Either the model learns something else than what is evaluated, or the evaluation is broken: wrong classes,
boxes, normalisation, mode or weights. The loss curve alone would look healthy.

## How it decides
The best of at least five evaluations is under 0.5 % of the scale and the training loss fell by 30 % or
more. 0.5 %: on the corpus every healthy detector is above 1 % after its first epoch; the smallest final
score of a healthy run is 4 % (LOG.md, 2026-11-16). An accuracy counts when training accuracy is twenty
times it. A record that stops early gives Unknown: detection scores stay near zero for long, then rise.

## When it is wrong
Very hard tasks or a metric with a threshold that a young model does not reach; long runs that were cut.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- Scores of detection stay near zero for long in sound runs, so the training side must have moved.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Series
from wheeltapper.study.curves import SUPPORTING
from wheeltapper.study.progress import Progress
from wheeltapper.study.statistics import fall_from_best

ID = "never-left-zero"
LIVE = False
SHARES = {"map", "map50", "iou", "dice", "bleu", "accuracy", "f1", "recall", "precision"}
ZERO = 0.005


def look(
    val_metrics: tuple[Series, ...],
    progress: Progress,
    train_loss: Series | None = None,
    train_accuracy: Series | None = None,
) -> Answer:
    scores = [s for s in val_metrics if s.quantity in SHARES and int(s.finite.sum()) >= 3]
    if not scores:
        return Unknown("no score between 0 and 1 is logged", ("a validation score",))
    # Recall and precision move with a threshold: 0.7 % of recall is no detector.
    main = next((s for s in scores if s.quantity not in SUPPORTING), scores[0])
    values = main.values[main.finite] / (100.0 if main.unit == "%" else 1.0)
    if values.max() > ZERO:
        return Clear(f"{main.name} reached {values.max():.3g}")
    trained = _share(train_accuracy)
    if main.quantity == "accuracy" and trained > 20 * max(float(values.max()), 1e-6) and trained > 0.05:
        text = f"{main.name} never exceeds {values.max():.2%} in {len(values)} evaluations, while training accuracy reached {trained:.1%}"
        return seen(ID, main, text, severity="ill", grade="is", onset=0, best=values.max(), learned=1.0)
    if main.quantity == "accuracy" and values.max() > 0:
        return Unknown("a low accuracy is judged against chance, which needs the number of classes", ("classes",))
    fell = fall_from_best(train_loss.values) if train_loss is not None else None
    learned = fell is not None and fell.gain > 0.3 * abs(fell.first)
    if len(values) < 5 or (progress.share is not None and progress.share < 0.5):
        return Unknown(f"{main.name} is still {values.max():.2g}; such scores rise late", ("the rest of the run",))
    text = f"{main.name} never exceeds {values.max():.2g} in {len(values)} evaluations"
    if learned and train_loss is not None and fell is not None:
        text += f", while {train_loss.name} fell from {fell.first:.4g} to {fell.last:.4g}"
    return seen(ID, main, text, severity="ill", grade="is", onset=0, best=values.max(), learned=float(learned))


def _share(series: Series | None) -> float:
    if series is None or not series.finite.any():
        return 0.0
    return float(np.nanmax(series.values)) / (100.0 if series.unit == "%" else 1.0)


CASES = {
    "finding": {
        "val/map": [0.0002, 0.0003, 0.0004, 0.0004, 0.0004, 0.0004],
        "train/loss": [11.0, 5.0, 2.0, 1.0, 0.8, 0.75],
    },
    "recall of a moment": {
        "val/map": [0.0004, 0.0, 0.0, 0.0, 0.0, 0.0],
        "val/recall": [0.0066, 0.0, 0.0, 0.0, 0.0, 0.0],
        "train/loss": [11.0, 5.0, 2.0, 1.0, 0.8, 0.75],
        "expect": "ill",
    },
    "clear": {"val/map": [0.02, 0.1, 0.2, 0.3, 0.35, 0.36], "train/loss": [11.0, 5.0, 2.0, 1.0, 0.8, 0.75]},
    "near miss": {
        "val/map": [0.0, 0.0, 0.0, 0.001, 0.02, 0.1],
        "train/loss": [11.0, 5.0, 2.0, 1.0, 0.8, 0.75],
        "expect": "clear",
    },
    "unknown": {"train/loss": [2.0, 1.5, 1.2, 1.0, 0.9]},
}
