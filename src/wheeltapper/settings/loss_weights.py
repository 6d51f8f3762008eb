"""The weights of several losses: a section or a list of them, or keys of one make side by side.

    task_weights: {material: 1.0, hardness: 40.0}      loss_weights = [1, 0.5]      lambda_rec: 10, lambda_cyc: 5

Two weights at least: one alone is a knob of its own (a KL weight, a gradient penalty) or nothing we know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wheeltapper.settings.dialects._nearest import EVAL
from wheeltapper.settings.dialects.schema import View, as_number, unresolved
from wheeltapper.settings.tree import Leaf
from wheeltapper.settings.vocabulary import meaning_of_path
from wheeltapper.settings.words import word_set, words_of

if TYPE_CHECKING:
    from wheeltapper.settings.knobs import Found

LEAST = 2
MOST = 40  # more are weights of classes or samples
_OF_LOSSES = word_set("loss task term terms objective objectives head tasks")
_OF_OTHERS = word_set("class classes sample label pos positive negative init initial model layer ema pretrained path file decay lr")
_NO_TERM = word_set("entropy value policy critic actor clip max min start end warmup n size lr scale")


def loss_weights(view: View, found: Found) -> None:
    """Give loss.weights where it is not set."""
    if "loss.weights" in found:
        return
    sections: dict[tuple[str, ...], dict[str, tuple[Any, Leaf]]] = {}
    side_by_side: dict[tuple[str, ...], dict[str, tuple[Any, Leaf]]] = {}
    for path, leaf in view.plain():
        if unresolved(leaf) or as_number(leaf.value) is None or any(EVAL.match(part.lower()) for part in path):
            continue
        if len(path) > 1 and _weights_of_losses(path[-2]):
            sections.setdefault(path[:-1], {})[path[-1]] = (leaf.value, leaf)
        elif term := _term(path[-1]):
            side_by_side.setdefault(path[:-1], {})[term] = (leaf.value, leaf)
    for group in (*sections.values(), *side_by_side.values()):
        if LEAST <= len(group) <= MOST:
            found.give("loss.weights", {name: value for name, (value, _) in group.items()}, next(iter(group.values()))[1])
            return


def _weights_of_losses(name: str) -> bool:
    """ "task_weights", "lossWeights", "lambdas"."""
    words = set(words_of(name))
    return "coef" in words and (words <= {"coef", "w"} or bool(words & _OF_LOSSES)) and not words & _OF_OTHERS


def _term(name: str) -> str:
    """The loss that a key weighs: "rec" of lambda_rec, loss_rec_weight, w_rec; empty where it is something else."""
    words = words_of(name)
    rest = [word for word in words if word not in ("coef", "w", "loss")]
    weighs = "coef" in words or (words[:1] == ("w",) and len(words) > 1) or words[-1:] == ("w",)
    if not weighs or len(rest) != 1 or set(rest) & (_OF_OTHERS | _NO_TERM) or meaning_of_path((name,)) is not None:
        return ""
    return rest[0]
