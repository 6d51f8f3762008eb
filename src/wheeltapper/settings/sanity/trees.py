"""Boosted trees and text pipelines: facts about their own settings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.settings.sanity.sheet import Doubt, Sheet

_TREES = ("xgboost", "lightgbm", "lgbm", "gbdt", "catboost", "boosting")


def inverted_weight(sheet: Sheet) -> Iterator[Doubt]:
    """The rare class is to weigh more, not less."""
    for s in sheet.settings:
        if s.key in ("scale_pos_weight", "pos_weight", "positive_weight") and s.number is not None and 0 < s.number < 0.7:
            yield Doubt("class-imbalance", f"`{s.name}` is {s.number:g}: the positives, which are rare, weigh less still", (s,), "range")


def leaves(sheet: Sheet) -> Iterator[Doubt]:
    """A leaf that needs more rows than there are."""
    if not sheet.says(*_TREES):
        return
    for s in sheet.settings:
        if s.key in ("min_data_in_leaf", "min_child_samples", "min_samples_leaf") and (s.number or 0) > 50_000:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g}: hardly any split leaves so many rows", (s,), "range")
        if s.key in ("min_child_weight", "min_sum_hessian_in_leaf") and (s.number or 0) > 1e5:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g}: hardly any split leaves so much", (s,), "range")


def objectives(sheet: Sheet) -> Iterator[Doubt]:
    """An objective of another kind than the metric or the task beside it."""
    goal = next((s for s in sheet.settings if s.key in ("objective", "problem_type", "loss", "criterion", "loss_function") and s.text), None)
    if goal is None:
        return
    low = goal.text.lower()
    metric = next((s for s in sheet.settings if s.key in ("metric", "eval_metric", "metrics", "eval_metrics") and (s.text or isinstance(s.value, list))), None)
    told = " ".join(map(str, metric.value)).lower() if metric is not None and isinstance(metric.value, list) else metric.text.lower() if metric is not None else ""
    ranked = any(word in told for word in ("ndcg", "mrr", "map@"))
    regression = any(word in low for word in ("squarederror", "regression", "mse", "rmse", "squared_error", "l2"))
    if metric is not None and ranked and low in ("binary", "regression", "multiclass", "binary:logistic", "reg:squarederror"):
        yield Doubt("objective-mismatch", f"`{goal.name}` is {goal.text}, and it is judged by {told} (`{metric.name}`)", (goal, metric))
    elif metric is not None and regression and any(word in told for word in ("auc", "f1", "accuracy", "logloss", "aucpr")):
        yield Doubt("objective-mismatch", f"`{goal.name}` is {goal.text}, and it is judged by {told} (`{metric.name}`)", (goal, metric), "range")
    labels = next((s for s in sheet.settings if s.key == "num_labels" and (s.number or 0) > 1), None)
    if goal.key == "problem_type" and labels is not None and "regression" in low:
        yield Doubt("objective-mismatch", f"`{goal.name}` is {goal.text} for {labels.number:g} labels (`{labels.name}`)", (goal, labels))
    gains = next((s for s in sheet.settings if s.key == "label_gain" and s.numbers), None)
    if gains is not None and len(gains.numbers) < 3 and "rank" in low:
        yield Doubt("objective-mismatch", f"`{gains.name}` has gains for {len(gains.numbers)} grades", (gains,), "range")


def last_activation(sheet: Sheet) -> Iterator[Doubt]:
    """A loss of probabilities on outputs that are none."""
    loss = next((s for s in sheet.settings if s.key in ("loss", "loss_function", "criterion", "loss_fn", "loss_name") and s.text), None)
    if loss is None:
        return
    low = loss.text.lower()
    of_probabilities = "crossentropy" in low.replace("_", "") and "logits" not in low
    for s in sheet.settings:
        last = s.own & {"output", "out", "final", "last"} and s.own & {"activation", "act"} and not s.own & {"dropout"}
        if last and of_probabilities and s.text.lower() in ("relu", "tanh", "gelu", "elu", "leaky_relu", "linear_relu"):
            yield Doubt("output-activation-wrong", f"`{s.name}` is {s.text}, and {loss.text} (`{loss.name}`) takes probabilities", (s, loss))
        if last and s.text.lower() in ("softmax",) and "logits" in low:
            yield Doubt("double-softmax", f"`{s.name}` is {s.text}, and {loss.text} (`{loss.name}`) takes logits", (s, loss))
    codes = next((s for s in sheet.settings if s.own & {"label", "labels", "target"} and s.own & {"encoding", "mode", "format"} and s.text), None)
    if codes is not None and low in ("categorical_crossentropy", "categoricalcrossentropy") and re.search(r"(?i)^(?:int|integer|ordinal|sparse|index|label)", codes.text):
        yield Doubt("objective-mismatch", f"`{codes.name}` is {codes.text}, and {loss.text} (`{loss.name}`) takes one-hot labels", (codes, loss))


def multi_label(sheet: Sheet) -> Iterator[Doubt]:
    """Node or picture classification with one label each, trained with a loss for many."""
    from wheeltapper.settings.sanity.names import datasets

    goal = next((s for s in sheet.settings if s.key in ("loss", "criterion", "loss_type", "loss_fn") and s.text.lower() in ("bce", "bce_with_logits", "bcewithlogits", "mse", "bcewithlogitsloss")), None)
    single = [(n, s) for n, s in datasets(sheet) if n not in ("coco", "ppi", "voc", "audioset", "chestxray14", "nih14", "stsb", "celebahq")]
    if goal is not None and single and not sheet.themes & {"gan", "vae", "diffusion"} and not sheet.says("mixup", "autoencoder", "detection"):
        yield Doubt("objective-mismatch", f"`{goal.name}` is {goal.text}, and {single[0][0]} has one label of several classes each", (goal, single[0][1]), "range")


CHECKS = (inverted_weight, leaves, objectives, last_activation, multi_label)
