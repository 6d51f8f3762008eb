"""Validation items are in the training set, or the answer is in the input.

## What happens
Duplicates across the splits, frames of one video or slices of one patient on both sides, a column that
holds the target: the score measures memory.

## How it shows
Validation follows training step for step, with nothing that would explain it; a strictly new set scores far
lower.

## What else looks like this
Validation better than training is usually normal: dropout, augmentation, mixup and label smoothing act in
training only, and the training value is a mean over an epoch in which the model still improved.

## When this is wrong
Training items through the validation code score better than validation items: then nothing leaks by copy.

## Fix
Split by group (subject, scene, document), remove duplicates, test on items collected later.

## Trial
Hash the items of both splits, exactly and by near-duplicates: minutes, and it decides.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- Keras FAQ, "Why is my training loss much higher than my testing loss?".
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import as_share
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "train-val-leak"
AREA = "data"
EXPLAINS = ("val-below-train",)
PRIOR = -4.0
TRIAL = "hash the items of both splits, exactly and by near-duplicates: minutes, and it decides"

TRAIN_ONLY = ("augment.dropout", "augment.drop_path", "augment.mixup", "augment.cutmix", "augment.random_erasing",
              "loss.label_smoothing")  # fmt: skip


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    if not case.found("val-below-train"):
        return Excluded("validation is not better than training")
    out = []
    active = [knob for knob in TRAIN_ONLY if isinstance(case.knob(knob), (int, float)) and case.knob(knob) > 0]
    if active:
        out.append(Evidence(-3.0, f"{', '.join(active)} makes training worse than validation by itself", "normal"))
    elif case.found("units-differ"):
        out.append(Evidence(-3.0, "the two losses are in different units", "normal"))
    gap = _test_gap(case)
    if gap is not None and gap > 0.1:  # ten points: far beyond what two draws of one population differ by
        out.append(Evidence(4.5, f"the test score lies {gap:.0%} below the validation score", "test"))
    elif gap is not None and gap < 0.02:
        out.append(Evidence(-2.0, "the test score agrees with the validation score", "test"))
    return out


def _test_gap(case: Case) -> float | None:
    """Validation minus test of the same share, at the end; None unless both are logged."""
    both: dict[str, Series] = {}
    for series in case.get("val_metrics") or ():
        if series.quantity == "accuracy" and not series.part and series.split in ("val", "test"):
            both[series.split] = series
    if len(both) < 2:
        return None
    val, test = (float(np.nanmedian(both[k].values[-3:])) / as_share(both[k]) for k in ("val", "test"))
    return val - test


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Split by group and remove duplicates before judging anything by this score.", (), "advice",
               "the score falls to that of a strictly new set"),
    )  # fmt: skip
