"""Folk rules that a run invites and its evidence refuses (KNOWLEDGE §16). Each is named and answered."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from wheeltapper.causes import Case
from wheeltapper.diagnosis.model import RuledOut
from wheeltapper.simulate.scaler import TORCH, skip_bounds


def refused(case: Case) -> tuple[RuledOut, ...]:
    """The folk rules someone would apply to this run, with why they do not hold."""
    return tuple(answer for rule in RULES if (answer := rule(case)) is not None)


def _high_scale(case: Case) -> RuledOut | None:
    scale = case.get("loss_scale")
    if scale is None or scale.clock != "step":
        return None
    last = float(scale.values[scale.finite][-1])
    if last <= 65536 or not math.isfinite(last) or case.found("scale-collapse"):
        return None
    power = math.log2(last)
    if abs(power - round(power)) > 1e-4:  # logs print five digits
        return None
    last = 2.0 ** round(power)
    steps = int(scale.at[-1])
    bounds = skip_bounds(TORCH, steps, last)
    text = f"a scale of 2^{round(power)} is not an explosion: it doubles after 2000 clean steps and halves on each overflow"
    if bounds.possible:
        text += f"; at most {bounds.high} overflows in {steps:,} steps bring it there"
    return RuledOut("high-loss-scale", "The loss scale is huge, so gradients explode", text)


def _scale_of_one(case: Case) -> RuledOut | None:
    scale = case.get("loss_scale")
    if scale is None or not np.all(scale.values[scale.finite] == 1.0):
        return None
    return RuledOut(
        "loss-scale-one",
        "The loss scale is stuck at 1, so fp16 has collapsed",
        "the scaler is off (bf16 or fp32): a disabled scaler reports exactly 1 at every step",
    )


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
    if since < 5:
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


RULES: tuple[Callable[[Case], RuledOut | None], ...] = (
    _high_scale,
    _scale_of_one,
    _val_below_train,
    _below_best,
    _one_high_value,
)
