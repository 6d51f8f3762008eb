"""Frequent classes are given the larger weight.

What it sees
------------
Weights of classes or samples that grow with the count of a class; a weight of positives that is positives over
negatives.

Why it matters
--------------
The rare class, for which the weights were made, counts even less.

How it decides
--------------
The weight is followed to the counts it is made of (bincount, value_counts, a sum of equalities). A count above the
line makes it grow. Sums of all counts say nothing.

When it is wrong
----------------
If frequent classes are to be preferred.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, number
from wheeltapper.program.reading import Code

ID = "class-weight-inverted"
CAUSE: str | None = "class-imbalance"
DECIDES = True

COUNTS = {"bincount", "value_counts", "Counter", "unique"}
WEIGHTS = {"class_weight", "sample_weight", "scale_pos_weight", "pos_weight", "weight", "weights"}
TAKERS = {"CrossEntropyLoss", "BCEWithLogitsLoss", "cross_entropy", "binary_cross_entropy_with_logits", "NLLLoss", "nll_loss", "WeightedRandomSampler"}
PASSES = {"tensor", "as_tensor", "FloatTensor", "float", "array", "asarray", "minimum", "maximum", "clip", "sqrt", "log1p", "to", "mean", "list", "dict"}


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.calls:
        if call.op != "call":
            continue
        for name, given in _weights(call):
            wrong = _positives_first(given) if name in ("scale_pos_weight", "pos_weight") else _growth(given) == {1}
            if wrong:
                yield code.seen(ID, f"{name} grows with the count of the class: the rare one counts less.", given, call)
                return


def _weights(call: Val) -> Iterator[tuple[str, Val]]:
    for name, value in call.kwargs.items():
        if name in WEIGHTS and (name not in ("weight", "weights") or call.name in TAKERS):
            yield name, value
    if call.name == "WeightedRandomSampler" and call.args:
        yield "weights", call.args[0]


def _growth(value: Val, sign: int = 1, depth: int = 0) -> set[int]:
    """With which signs counts of classes stand in a weight: 1 where it grows with them."""
    if depth > 14:
        return set()
    go = depth + 1
    if _is_count(value):
        return {sign}
    match value.op:
        case "bin" if value.name in ("Add", "Mult"):
            return _growth(value.args[0], sign, go) | _growth(value.args[1], sign, go)
        case "bin" if value.name in ("Div", "FloorDiv", "Sub"):
            return _growth(value.args[0], sign, go) | _growth(value.args[1], -sign, go)
        case "bin" if value.name == "Pow" and (power := number(value.args[1])) is not None:
            return _growth(value.args[0], sign if power > 0 else -sign, go)
        case "item" | "phi" | "attr" | "comp" | "elem":
            return set().union(*(_growth(a, sign, go) for a in value.args[:1]))
        case "call" if value.name in PASSES and value.args:
            return _growth(value.args[0], sign, go)
    return set()


def _is_count(value: Val) -> bool:
    if value.op == "call" and value.name in COUNTS:
        return True
    return value.op == "bin" and value.name == "Add" and value.data == "aug" and any(_is_count(a) for a in value.args)


def _positives_first(value: Val) -> bool:
    """`(y == 1).sum() / (y == 0).sum()`"""
    while value.op == "call" and value.name in PASSES and value.args:
        value = value.args[0]
    if value.op in ("list", "tuple") and value.items:
        value = value.items[0]
    if value.op != "bin" or value.name != "Div":
        return False
    top, bottom = (_counted(a) for a in value.args)
    return (top, bottom) == (1, 0)


def _counted(value: Val) -> float | None:
    """The class that a sum counts: 1 of `(y == 1).sum()`, and of `y.sum()` beside a difference from the whole."""
    if value.op == "call" and value.name == "sum" and value.args:
        inner = value.args[0]
        if inner.op == "cmp" and inner.name == "Eq":
            return number(inner.args[1])
        return 1.0 if inner.op in ("item", "call", "split", "attr") else None
    if value.op == "bin" and value.name == "Sub":
        return 0.0 if _counted(value.args[1]) == 1 else None
    return None
