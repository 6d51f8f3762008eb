"""Curves, misread: a best that lies back, a validation that is better, one high value."""

from __future__ import annotations

import numpy as np

from wheeltapper.judge.model import RuledOut
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._look import ends


def _val_below_train(case: Case) -> RuledOut | None:
    if not case.found("val-below-train"):
        return None
    return RuledOut(
        "val-below-train",
        "Validation is better than training, so data leaks",
        "dropout, augmentation, mixup and label smoothing act in training only, and the training loss is a mean over "
        "an epoch in which the model still improved; leakage needs a test of its own",
    )


def _below_best(case: Case) -> RuledOut | None:
    if case.found("declined-after-peak", "collapsed"):
        return None
    metric = case.get("main_metric")
    if metric is None or int(metric.finite.sum()) < 10:
        return None
    x = metric.values[metric.finite]
    best = x.max() if metric.better == "up" else x.min()
    since = len(x) - 1 - int(np.argmax(x) if metric.better == "up" else np.argmin(x))
    if since < 5 or float(np.ptp(x)) == 0.0:
        return None
    return RuledOut(
        "no-new-best",
        f"No new best for {since} evaluations, so it overfits",
        f"{metric.name} ends at {x[-1]:.4g} against a best of {best:.4g}: on a flat, noisy curve so long a wait is the rule, "
        "and the fall is within noise and selection",
    )


def _one_high_value(case: Case) -> RuledOut | None:
    """A last or highest value far above the level, in a loss that spreads like that all along."""
    train = case.get("train_loss")
    if train is None or case.found("diverged", "not-finite", severity="ill") or int(train.finite.sum()) < 20:
        return None
    x = train.values[train.finite]
    late = x[len(x) // 2 :]
    level, last = float(np.median(late)), float(x[-1])
    if level <= 0 or last < 5 * level:
        return None
    above = float(np.mean(late >= last / 2))
    return RuledOut(
        "last-value-high",
        f"The loss ended at {last:.3g}, so the run diverged",
        f"one value is one batch: the level of the second half is {level:.3g}, and {above:.1%} of its values reach half of "
        f"{last:.3g} as well; a level would have to rise, and it did not",
    )


def _overfit_by_its_training_loss(case: Case) -> RuledOut | None:
    """Overfitting is said of every rise; what it does to the training loss is the opposite."""
    train = case.get("train_loss")
    if train is None or case.get("shifting") or case.found("train-val-gap", "memorised"):
        return None
    risen = [f for f in case.found("diverged", "slow-rise", "above-start") if f.series == train.name]
    high = _one_high_value(case)
    if not risen and high is None:
        return None
    levels = ends(train)
    last = float(train.values[train.finite][-1])
    told = (
        f"here it went from {levels[0]:.3g} to {levels[1]:.3g}" if risen and levels else f"here it ended at {last:.3g}"
    )
    return RuledOut(
        "overfit-by-training-loss",
        "It overfits, so the loss rose",
        f"overfitting lowers the training loss and raises another; {told}, and that is the training loss",
    )


RULES = (_val_below_train, _below_best, _one_high_value, _overfit_by_its_training_loss)
