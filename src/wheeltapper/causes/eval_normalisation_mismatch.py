"""Validation images are normalised in another way than training images.

## What happens
Another mean and spread, 0 to 255 instead of 0 to 1, BGR instead of RGB: the network sees inputs at validation
that it never saw in training.

## How it shows
The training loss falls as it should while the score on held-out data is at zero, at chance, or far below.

## What else looks like this
Other faults of the evaluation: weights, class indices, boxes in other units, a wrong mode.

## When this is wrong
Both pipelines state the same mean, spread and order of channels.

## Fix
One definition of the normalisation, used by both pipelines.

## Trial
Training items through the validation pipeline with the last checkpoint; then with the channels swapped.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import fell
from wheeltapper.config.dialects.schema import place_of
from wheeltapper.config.tree import Leaf
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Run

ID = "eval-normalisation-mismatch"
AREA = "evaluation"
EXPLAINS = (
    "never-left-zero", "at-chance", "train-val-gap", "below-baseline", "val-left-behind", "gap-at-guessing",
    "declined-after-peak",
)  # fmt: skip
PRIOR = -3.0
TRIAL = "training items through the validation pipeline with the last checkpoint, then with channels swapped: minutes"

KEYS = re.compile(r"^(mean|std|to_rgb|bgr_to_rgb|rgb_mean|rgb_std|pixel_mean|pixel_std|normali[sz]e\w*|rescale)$")


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    chance = case.found("at-chance", severity="ill")
    if chance and chance[0].numbers.get("fell"):
        return Excluded("the score had been good with the same evaluation")
    if not case.found(*EXPLAINS[:-1], severity="ill"):
        return Excluded("the score was good before it fell, with the same evaluation")
    told = _told(case.run)
    pairs = [(key, told["train"][key], told["val"][key]) for key in told["train"] if key in told["val"]]
    other = [(key, a, b) for key, a, b in pairs if _values(a) != _values(b)]
    if pairs and not other:
        return Excluded(f"both pipelines state the same {', '.join(key for key, _, _ in pairs)}")
    drop = fell(case.get("train_loss"))
    same = fell(case.get("val_loss"))
    if not other and same is not None and same > 0.3:
        return Excluded(f"the validation loss fell by {same:.0%} with the same pipeline")
    if not other:
        floor = case.found("at-chance", "never-left-zero", "below-baseline", "val-left-behind", "gap-at-guessing", severity="ill")
        learned = bool(floor) and drop is not None and drop > 0.3
        return (
            [Evidence(3.0, f"the training loss fell by {drop:.0%}, so something was learned", "training")]
            if learned
            else []
        )
    key, a, b = other[0]
    out = [
        Evidence(8.0, f"{key} is {_values(a)} in training and {_values(b)} in validation", "proof",
                 (place_of(a[0]), place_of(b[0])))
    ]  # fmt: skip
    if drop is not None and drop < 0.05:
        out.append(Evidence(-4.0, "the training loss did not fall either", "training"))
    return out


def _values(leaves: list[Leaf]) -> list[object]:
    return [leaf.value for leaf in leaves]


def _told(run: Run) -> dict[str, dict[str, list[Leaf]]]:
    """By split and key, the leaves of the first pipeline that states it."""
    out: dict[str, dict[str, list[Leaf]]] = {"train": {}, "val": {}}
    for tree in run.configs:
        owner: dict[tuple[str, str], tuple[object, ...]] = {}
        for leaf in tree.leaves:
            names = [part for part in leaf.path if isinstance(part, str)]
            if not names or not KEYS.match(names[-1]):
                continue
            words = " ".join(names[:-1]).lower()
            split = "train" if "train" in words else "val" if re.search(r"val|test|eval", words) else ""
            parent = leaf.path[: leaf.path.index(names[-1])]
            if split and owner.setdefault((split, names[-1]), parent) == parent:
                out[split].setdefault(names[-1], []).append(leaf)
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Use one normalisation for both pipelines.", (), "safe",
               "on training items the validation code gives the training score"),
    )  # fmt: skip
