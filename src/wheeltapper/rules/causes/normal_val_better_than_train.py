"""Validation better than training is expected here.

## What happens
Dropout, stochastic depth, mixup, cutmix, erasing and label smoothing act in training only, so the training loss
is that of a harder task.

## How it shows
The validation loss lies below the training loss, from early on.

## What else looks like this
Leakage between the splits; losses in different units; an easier validation set.

## When this is wrong
Training items in evaluation mode, without augmentation, still score worse than validation items.

## Fix
Nothing to mend. Evaluate a part of the training set in evaluation mode if the comparison matters.

## Trial
A few hundred training items through the validation code: they must score at least as well.

## References
- Keras FAQ, "Why is my training loss much higher than my testing loss?".
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

from wheeltapper.rules.causes import Case

ID = "normal-val-better-than-train"
AREA = "evaluation"
NORMAL = True
KNOBS = {
    "augment.mixup": "mixup",
    "augment.cutmix": "cutmix",
    "augment.dropout": "dropout",
    "augment.drop_path": "stochastic depth",
    "augment.random_erasing": "random erasing",
    "loss.label_smoothing": "label smoothing",
}


def expect(case: Case) -> str:
    """Only where a setting explains it: without one the pattern stays a note."""
    if not case.found("val-below-train"):
        return ""
    active = [
        f"{word} {value:g}"
        for knob, word in KNOBS.items()
        if isinstance(value := case.knob(knob), (int, float)) and value > 0
    ]
    if not active:
        return ""
    verb = "act" if len(active) > 1 else "acts"
    return f"validation better than training is expected here because {', '.join(active)} {verb} in training only"
