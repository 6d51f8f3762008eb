"""One class dominates, and the model predicts it always.

## What happens
The cheapest way to lower the loss is to learn the frequency of the classes. With a rare positive class a
constant answer is already nearly right, and the gradient of the rare items drowns.

## How it shows
Accuracy stands at the share of the largest class, exactly, while recall, F1, IoU or the correlation of the
rare class stay at zero.

## What else looks like this
A dead network and a collapsed one also give one answer; labels that never match; a threshold that is wrong.

## When this is wrong
The scores that count every class alike rise, or the classes are balanced.

## Fix
Judge by a balanced score; weigh or resample the classes; start the last bias at the log odds of the prior.

## Trial
Print the histogram of the predictions on the validation set: one class decides.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import OFF, as_share, settings_like
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "class-imbalance"
AREA = "data"
EXPLAINS = ("at-prior", "constant-metric", "never-left-zero")
PRIOR = -2.5
TRIAL = "print the histogram of the predictions on the validation set: one class decides"

BALANCED = ("f1", "recall", "mcc", "iou", "dice", "precision")


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    scores: tuple[Series, ...] = case.get("val_metrics") or ()
    accuracy = next((s for s in scores if s.quantity == "accuracy" and not s.part), None)
    if accuracy is None:
        return Excluded("no accuracy is logged that a constant answer could explain")
    level = _end(accuracy)
    balanced = [s for s in scores if s.quantity in BALANCED and int(s.finite.sum()) >= 3]
    alive = [s for s in balanced if _best(s) > 0.05]
    if balanced and len(alive) == len(balanced):
        return Excluded(f"{alive[0].name} reaches {_best(alive[0]):.2f}: the rare class is found")
    out = []
    if balanced and not alive and level > 0.5:
        out.append(
            Evidence(5.0, f"accuracy is {level:.1%} while {balanced[0].name} is at most {_best(balanced[0]):.3f}",
                     "scores", (accuracy.place(len(accuracy) - 1),))
        )  # fmt: skip
    classes = case.knob("model.classes")
    if isinstance(classes, (int, float)) and classes >= 2:
        chance = 1.0 / classes
        stands = any(f.series == accuracy.name for f in case.found("constant-metric"))
        if level < chance + 0.06:  # the same room that the sign at-chance gives
            return Excluded(f"accuracy is {level:.1%}, chance for {classes:.0f} balanced classes")
        if stands:
            out.append(Evidence(2.0, f"accuracy stands at {level:.1%}, above chance ({chance:.1%}) and fixed", "level"))
    weights = [leaf for leaf in settings_like(case.run, r"class_?weight|pos_?weight|balanced|oversampl")
               if leaf.value not in OFF]  # fmt: skip
    if weights:
        out.append(Evidence(-1.0, f"classes are weighed already ({weights[0].dotted})", "setting"))
    return out


def _end(series: Series) -> float:
    return float(np.median(series.values[series.finite][-3:])) / as_share(series) if series.finite.any() else 0.0


def _best(series: Series) -> float:
    return float(np.nanmax(series.values)) / as_share(series)


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Judge by a score that counts every class alike, and weigh or resample the classes.", (), "try",
               "recall of the rare class leaves zero"),
    )  # fmt: skip
